"""What is checked before a commit is what `make check` checks, with the same words."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOOKS = (ROOT / ".pre-commit-config.yaml").read_text()


def recipe(target: str) -> list[str]:
    """The commands of a target of the Makefile, with the variables that they use filled in."""
    text = (ROOT / "Makefile").read_text()
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", text, re.MULTILINE)
    assert found, f"the Makefile has no target {target}"
    return [line.strip().replace("$(BIN)", ".venv/bin") for line in found[1].splitlines()]


def entries() -> list[str]:
    return re.findall(r"^ +entry: (.+)$", HOOKS, re.MULTILINE)


def test_the_hooks_are_the_commands_of_make_check_without_the_tests() -> None:
    assert any("types style" in command for command in recipe("check"))
    assert entries() == [*recipe("style"), *recipe("types")]


def test_every_hook_is_local_and_looks_at_everything() -> None:
    """A file that is not part of the commit may be what breaks."""
    hooks = HOOKS.count("- id: ")
    assert hooks == len(entries()) == HOOKS.count("pass_filenames: false") == HOOKS.count("language: system")
    assert re.findall(r"repo: (\S+)", HOOKS) == ["local"]
