"""What the pages say of the code is what the code says, and what they point to is there."""

import grp
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from docs.generate import DOCS, PARTS, pages, renewed
from pulse_adapters.config.catalogue import groups, settings_of
from pulse_adapters.config.file import load
from pulse_core.composition import SURVIVAL
from pulse_core.rules.onion import rule_name
from pulse_core.rules.survival.process_watchdog import ProcessState
from pulse_core.testing import given
from tests.docs.docs_console import PAGES, ROOT, blocks
from upulse_cli.app import app

EXAMPLES = [(page, place) for page in PAGES for place, _ in enumerate(blocks(page, "toml"))]
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_generated_parts_are_fresh(page: Path) -> None:
    assert page.read_text() == renewed(page.read_text()), "stale; write it anew with: make docs"


def test_every_generated_part_has_its_place() -> None:
    texts = [page.read_text() for page in pages()]
    for name in PARTS:
        assert sum(f"<!-- generated: {name} -->" in text for text in texts) == 1


def test_the_example_of_a_rule_that_a_log_line_triggers_tells_of_it_once() -> None:
    (example,) = [one for one in blocks(DOCS / "writing-rules.md", "python") if "tell_of_a_full_cache" in one]
    names: dict[str, Any] = {}
    exec(compile(example, "writing-rules.md", "exec"), names)
    story = given(names["tell_of_a_full_cache"], projections={"cache_full": names["cache_full"]})
    story.tick()
    story.expect_nothing("notify")
    for _ in range(2):
        lines = ["a word", "the cache is full"]
        story.happened("log-matched", names["FILE"], severity="warning", lines=lines, count=2)
    story.tick()
    assert story.expect("notify", key="notify:cache-full").params["text"] == "the cache is full"
    story.after("11m").tick()
    story.expect_nothing("notify")


@pytest.mark.parametrize(("page", "place"), EXAMPLES, ids=lambda part: getattr(part, "name", str(part)))
def test_every_example_of_settings_loads(page: Path, place: int, tmp_path: Path) -> None:
    group = grp.getgrgid(os.getgid()).gr_name  # a group that this machine has
    example = list(blocks(page, "toml"))[place].replace('group = "agents"', f'group = "{group}"')
    (tmp_path / "config.toml").write_text(example)
    assert len(load(tmp_path / "config.toml").process) == len(tomllib.loads(example).get("process", ()))


def test_every_command_and_option_is_on_the_page_of_commands() -> None:
    chapters = dict(
        re.findall(r"^## `(upulse[^`]*)`\n(.*?)(?=^## |\Z)", (DOCS / "cli.md").read_text(), re.M | re.S)
    )
    for path, command in leaves(typer.main.get_command(app), "upulse"):
        for parameter in command.params:
            for word in [option for option in parameter.opts if option.startswith("-")]:
                assert word in chapters[path]
            assert getattr(parameter, "help", None), f"{path} {parameter.name} says nothing of itself"


def leaves(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command with its path."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from leaves(inner, f"{path} {name}")


def test_every_setting_is_on_the_page_of_settings() -> None:
    page = (DOCS / "configuration.md").read_text()
    keys = {setting.key for _, model in groups() for setting in settings_of(model)}
    assert not [key for key in keys if f"| `{key}` |" not in page]


def test_every_state_of_a_process_is_explained() -> None:
    page = (DOCS / "concepts.md").read_text()
    assert not [state.value for state in ProcessState if f"| `{state.value}` |" not in page]


def test_every_survival_rule_is_named() -> None:
    page = (DOCS / "architecture.md").read_text()
    assert not [rule for rule in SURVIVAL if f"`{rule_name(rule)}`" not in page]


def test_the_glossary_is_in_order_and_says_each_word_once() -> None:
    glossary = (DOCS / "concepts.md").read_text().split("## Glossary")[1]
    words = re.findall(r"^\| ([a-z-]+) \|", glossary, re.MULTILINE)[1:]
    assert words == sorted(set(words))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text()):
        target, _, anchor = link.partition("#")
        if not target.startswith("https:"):
            file = (page.parent / target) if target else page
            assert file.exists()
            assert not anchor or anchor in anchors(file)


def anchors(page: Path) -> set[str]:
    """The names of a page's headings in links."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_readme_fits_on_a_few_screens() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 160
