"""Each key has a line, whatever TOML it is written in."""

import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulse_adapters.config.errors import value_at
from pulse_adapters.config.toml_lines import locate, nearest
from pulse_adapters.config.toml_writer import inline, key
from tests.long_form import sample

TEXT = '''# [not.a.table]
title = """two
[lines]
x = 1 "" """
a.b."c d" = 'x'
[daemon] # [[foo]]
tick_ms = 5
list = [
  "x", # ]
  { q = [1,
   2], 'r' = 3 },
]
[[process]]
name = "a = [b]"
restart = { max = 5, within = "10m" }
[process.env]
X = "1"
[[process]]
name = "b#"
[executors."run-command"]
allow = ['/bin/sh']
when = 2020-01-01 00:00:00Z
z = \'\'\'q'' = [\'\'\'
last = 1'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 2),
        (("a", "b", "c d"), 5),
        (("daemon",), 6),
        (("daemon", "tick_ms"), 7),
        (("daemon", "list", 0), 9),
        (("daemon", "list", 1, "q", 1), 11),
        (("daemon", "list", 1, "r"), 11),
        (("process", 0, "name"), 14),
        (("process", 0, "restart", "within"), 15),
        (("process", 0, "env", "X"), 17),
        (("process", 1), 18),
        (("process", 1, "name"), 19),
        (("executors",), 20),
        (("executors", "run-command", "allow", 0), 21),
        (("executors", "run-command", "last"), 24),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_key_has_its_line(path: tuple[str | int, ...], line: int, newline: str) -> None:
    assert locate(TEXT.replace("\n", newline))[path] == line


def test_what_has_no_line_of_its_own_takes_that_of_what_it_is_in() -> None:
    lines = locate(TEXT)
    assert nearest(lines, ("process", 1, "start")) == 18
    assert nearest(lines, ("nowhere",)) == 1


keys = st.text(max_size=5).filter(lambda name: "\0" not in name)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=8)
values = st.recursive(
    st.integers(-9, 9) | st.booleans() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def paths(value: Any, path: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return {path} | {found for name, held in pairs for found in paths(held, (*path, name))}


@settings(max_examples=sample(40, 400))
@given(st.dictionaries(texts, st.dictionaries(texts, values, max_size=4), max_size=4))
def test_every_key_of_every_valid_text_is_found_and_no_other(tables: dict[str, dict[str, Any]]) -> None:
    rows: list[str] = []
    expected: dict[tuple[str | int, ...], int] = {}
    for name, table in tables.items():
        rows.append(f"[{key(name)}]")
        expected[(name,)] = len(rows)
        for inner, value in table.items():
            rows.append(f"{key(inner)} = {inline(value)}")
            expected |= {(name, inner, *below): len(rows) for below in paths(value)}
    text = "\n".join(rows)
    assert tomllib.loads(text) == tables
    assert locate(text) == expected
    assert all(value_at(tables, path) is not None for path in expected)
