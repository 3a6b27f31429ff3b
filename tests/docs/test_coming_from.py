"""What the page for users of other tools names in its right column is there: settings, values of them, commands, options."""

import re

import pytest
import typer.main

from docs.generate import DOCS
from pulse_adapters.config.catalogue import groups, settings_of
from tests.docs.test_docs_pages import leaves
from upulse_cli.app import app

ROWS = re.findall(r"^\| (.+) \| (.+) \|$", (DOCS / "coming-from.md").read_text(), re.MULTILINE)
WORDS = [word for left, right in ROWS if set(left) - set("-|") for word in re.findall(r"`([^`]+)`", right)]
COMMANDS = dict(leaves(typer.main.get_command(app), "upulse"))
OPTIONS = {name for one in COMMANDS.values() for parameter in one.params for name in parameter.opts}
KEYS = {setting.key for _, model in groups() for setting in settings_of(model)}
PATHS = {path for path, _ in groups()}
ELSEWHERE = {"config.toml", "conf.d/*.toml", "logs/NAME.log", "pg_isready"}


@pytest.mark.parametrize("word", sorted(set(WORDS) - ELSEWHERE))
def test_what_the_page_names_is_there(word: str) -> None:
    if word.startswith("upulse"):
        words = word.split()
        names = [one for one in words if not one.startswith("-")]
        assert " ".join(names) in COMMANDS
        assert {one for one in words if one.startswith("-")} <= OPTIONS
    elif word.startswith("-"):
        assert word in OPTIONS
    elif word.startswith("["):
        assert word.strip("[]") in PATHS
    else:
        key, _, value = word.partition(" = ")
        assert key in KEYS or any(path.endswith(f".{key}") for path in PATHS)
        settings = [one for _, model in groups() for one in settings_of(model) if one.key == key]
        choices = [choice for one in settings for choice in one.choices or ()]
        assert not value or value == "false" or value.strip('"') in choices or key == "then"


def test_the_page_has_a_table_for_each_of_the_three() -> None:
    assert len(ROWS) > 60
    assert len(set(WORDS)) > 80
