"""Reads the commit of main from git's files, without running git, for commands that must be quick."""

from pathlib import Path

from pulse_adapters.git.revision_path import COMMIT

_MAIN = "refs/heads/main"


def read_main(home: Path) -> str:
    """The commit of main; empty if the files don't tell it."""
    folder = home / "engine" / ".git"
    try:
        found = (folder / _MAIN).read_text()
    except OSError:
        found = _packed(folder / "packed-refs")
    return word if COMMIT.fullmatch(word := found.strip()) else ""


def _packed(file: Path) -> str:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return ""
    return next((line.split(" ")[0] for line in lines if line.endswith(f" {_MAIN}")), "")
