"""Every regular expression of the package takes time in proportion to the text: much of it is text of others."""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pulse_adapters.config.toml_lines import excess
from pulse_core.model.secret_text import hide_secrets
from pulse_core.projections.engine import fault_identity
from pulse_core.projections.logs import shape_of
from tests.linear_time import slow_text

ROOT = Path(__file__).parents[2]
ANYWHERE = {"search", "sub", "subn", "findall", "finditer", "split"}
FUNCTIONS = {*ANYWHERE, "compile", "match", "fullmatch"}
OF_OTHERS = {
    "pulse_core/model/payload.py": {"pattern"},  # of `shape`, whose calls are looked at
    "pulse_adapters/config/settings_check.py": {"text"},  # only whether it would be one
    "upulse_cli/capabilities/agents/wiring.py": {"tool.logged_in"},  # of the settings, in a command
    "pulse_adapters/files/text_search.py": {"b'|'.join(map(re.escape, wanted))"},  # fixed words
    "pulse_adapters/sqlite/backup/saved_log.py": {"re.escape(text)"},  # fixed, too
}
"""Expressions that stand elsewhere, and why it is no matter."""


USED_BY: Mapping[str, Callable[[str], object]] = {"pulse_adapters/config/toml_lines.py": excess}
"""What stops where its expression does not go on, and is therefore tried in its place."""


class Written(NamedTuple):
    """A regular expression in the source: where, what it is, and whether it is looked for at any place of a text."""

    place: str
    pattern: str | bytes
    flags: int
    is_searched: bool


def sources() -> Iterator[tuple[Path, list[ast.AST]]]:
    for package in ("pulse_core", "pulse_adapters", "upulse_cli"):
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text()
            if "import re\n" in text or "shape(" in text:
                yield path, list(ast.walk(ast.parse(text)))


def written() -> Iterator[Written]:
    trees = list(sources())
    searched = {
        ast.unparse(node.value).rpartition(".")[2]
        for _, nodes in trees
        for node in nodes
        if isinstance(node, ast.Attribute) and node.attr in ANYWHERE
    }
    for path, nodes in trees:
        name = str(path.relative_to(ROOT))
        assigned = {
            id(node.value): ast.unparse(node.targets[-1])
            for node in nodes
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        }
        whole = {
            id(node.value)
            for node in nodes
            if isinstance(node, ast.Attribute) and node.attr in ("match", "fullmatch")
        }
        for node in nodes:
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=verb)) if verb in FUNCTIONS:
                    is_searched = verb in ANYWHERE
                    if verb == "compile":
                        is_searched = id(node) not in whole and assigned.get(id(node), "") in {"", *searched}
                case ast.Call(func=ast.Name(id="shape" as verb)):
                    is_searched = False
                case _:
                    continue
            told = ast.unparse(node.args[0])
            if told in OF_OTHERS.get(name, ()):
                continue
            module = import_module(name.removesuffix(".py").replace("/", ".").removesuffix(".__init__"))
            flags = [word.value for word in node.keywords if word.arg == "flags"]
            if verb == "compile":
                flags += node.args[1:]
            compiled = re.compile(
                *(eval(ast.unparse(one), dict(vars(module))) for one in (node.args[0], *flags))
            )
            yield Written(f"{name}:{node.lineno}", compiled.pattern, compiled.flags, is_searched)


WRITTEN = list(written())


@pytest.mark.wall_clock
@pytest.mark.parametrize("one", WRITTEN, ids=[one.place for one in WRITTEN])
def test_a_regular_expression_takes_linear_time(one: Written) -> None:
    compiled = re.compile(one.pattern, one.flags)

    def search(text: Any) -> object:
        return [*compiled.finditer(text)] if one.is_searched else compiled.fullmatch(text)

    used_by = USED_BY.get(one.place.partition(":")[0])
    assert not slow_text(used_by or search, one.pattern, one.flags)


SLOW = (
    r"0[xX][0-9a-fA-F]+|\b(?=[0-9a-fA-F-]*\d)[0-9a-fA-F]{6,}(?:-[0-9a-fA-F]{4,})*\b|\d+(?:[.:,]\d+)*",
    r"(://(?=[^/\s@]*:[^/\s@]{1,400}@)|\bBearer[ ])[^\s]{4,}",
    r"://[^/\s@]*:[^/\s@]+@",
    r"(a+)+$",
    r"\s+$",
)


@pytest.mark.parametrize("pattern", SLOW)
def test_a_slow_expression_would_be_found(pattern: str) -> None:
    assert slow_text(lambda text: [*re.finditer(pattern, text)], pattern)


@pytest.mark.wall_clock
@pytest.mark.parametrize("text", SLOW)
def test_what_is_made_of_text_of_others_takes_linear_time(text: str) -> None:
    env = {"API_TOKEN": "a" * 20, "URL": "a://a:a@a"}
    for ask in (
        lambda given: hide_secrets(given, env),
        lambda given: hide_secrets("x", {"ANY": given}),
        shape_of,
        lambda given: fault_identity("rule:it", given),
    ):
        assert not slow_text(ask, text)
