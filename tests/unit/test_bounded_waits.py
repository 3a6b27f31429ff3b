"""No test waits for a process or a thread without a bound: pytest's own timeout doesn't reach into cleanups."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
RUNS = ("run", "call", "check_call", "check_output")
WAITS = ("wait", "communicate", "join")


def unbounded(source: str) -> Iterator[int]:
    """The lines that wait for as long as it takes."""
    if "subprocess" not in source and "threading" not in source:
        return
    tree = ast.parse(source)
    own_time = {"subprocess", "threading"} & {
        name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    }
    awaited = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Await)}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="subprocess"), attr=name), keywords=more):
                if name in RUNS and not {None, "timeout"} & {one.arg for one in more}:
                    yield node.lineno
            case ast.Call(func=ast.Attribute(attr=name), args=[], keywords=[]):
                if own_time and name in WAITS and id(node) not in awaited:
                    yield node.lineno
            case ast.withitem(
                context_expr=ast.Call(func=ast.Attribute(value=ast.Name(id="subprocess"), attr="Popen"))
            ):
                yield node.context_expr.lineno


def test_every_wait_for_a_process_or_a_thread_is_bounded() -> None:
    long = (TESTS / "benchmarks", TESTS / "campaign" / "__main__.py")  # a person waits for these
    files = [path for path in sorted(TESTS.rglob("*.py")) if not any(map(path.is_relative_to, long))]
    found = [f"{path.relative_to(TESTS)}:{line}" for path in files for line in unbounded(path.read_text())]
    assert found == []


@pytest.mark.parametrize(
    "line",
    ["subprocess.run(['x'])", "child.wait()", "thread.join()", "with subprocess.Popen(['x']):\n    ..."],
)
def test_a_wait_without_a_bound_is_found(line: str) -> None:
    assert list(unbounded(f"import subprocess, threading\n{line}")) == [2]


@pytest.mark.parametrize(
    "line",
    [
        "subprocess.run(['x'], timeout=9)",
        "child.wait(9)",
        "thread.join(9)",
        "', '.join(words)",
        "await told.wait()",
    ],
)
def test_a_wait_with_a_bound_is_left_alone(line: str) -> None:
    assert list(unbounded(f"import subprocess, threading\n{line}")) == []
