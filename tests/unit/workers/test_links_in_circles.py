"""A path is followed in a way that survives links which lead in a circle: `Path.resolve` raises RuntimeError there, which
nobody awaits, in every Python before 3.13."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[3]


def follows(node: ast.AST) -> bool:
    """Whether this is a call `….resolve()`; those of Pulse's own functions of that name have arguments."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr == "resolve" and not node.args


def test_nobody_follows_a_path_in_a_way_that_fails_in_a_circle() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}: say Path(os.path.realpath(path))"
        for package in ("pulse_core", "pulse_adapters", "upulse_cli")
        for file in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and follows(node)
    ]
    assert not found, found
