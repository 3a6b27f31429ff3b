"""The flags that agents, and the servers of the recipes, are called with, held against what the installed programs know.

Each is installed anew from its registry, into a folder of its own. Cursor's is in none: its flags are those of its
documentation.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pulse_core.agents.settings import AgentSettings
from pulse_core.agents.tools import TOOLS
from upulse_cli.capabilities.agents.wiring import presence_of

DOCS = Path(__file__).parents[2] / "docs/recipes"


class Source(NamedTuple):
    """Where a program comes from: how it is installed into a folder, where it is then, and its command that does tasks."""

    install: Sequence[str]
    program: str
    command: tuple[str, ...] = ()


def _npm(package: str, program: str, *command: str) -> Source:
    argv = ("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", ".", package)
    return Source(argv, f"node_modules/.bin/{program}", command)


SOURCES = {
    "claude": _npm("@anthropic-ai/claude-code", "claude"),
    "codex": _npm("@openai/codex", "codex", "exec"),
    "hermes": Source(
        ("sh", "-c", f"{sys.executable} -m venv . && bin/pip install -qq hermes-agent"),
        "bin/hermes",
        ("chat",),
    ),
}

RECIPES = {
    "litellm": Source(
        ("sh", "-c", f"{sys.executable} -m venv . && bin/pip install -qq 'litellm[proxy]'"), "bin/litellm"
    ),
    "openclaw": _npm("openclaw", "openclaw", "gateway"),
}
"""Of which the page of this name in docs/recipes says how they are started."""


def check_recipes(folder: Path) -> Iterator[str]:
    """The same of the servers of the recipes; a registry may have a package without the program."""
    for name, source in RECIPES.items():
        (place := folder / name).mkdir()
        done = subprocess.run(source.install, cwd=place, timeout=1_200, check=False)
        assert done.returncode == 0, f"{name} can't be installed from its registry"
        if not (place / source.program).exists():
            yield f"{name}: its registry has no such program, so nothing was checked"
            continue
        found = re.search(r"^start = (\[.+\])$", (DOCS / f"{name}.md").read_text(), re.MULTILINE)
        assert found
        words: list[str] = json.loads(found[1])
        assert words[: 1 + len(source.command)] == [name, *source.command]
        command = str(place / source.program), *source.command
        flags, _ = known_flags(name, command, words, place)
        yield f"{name} knows {' '.join(flags)}"


def known_flags(
    name: str, command: Sequence[str], words: Sequence[str], home: Path
) -> tuple[Sequence[str], str]:
    """The flags among these words, and the program's help; raises AssertionError if the program's help does not name one."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home)}
    told = subprocess.run(
        (*command, "--help"), env=env, capture_output=True, text=True, timeout=120, check=True
    ).stdout
    flags = [word for word in words if word.startswith("-") and word != "-"]
    missing = [flag for flag in flags if not re.search(rf"(?<![\w-]){flag}(?![\w-])", told)]
    assert not missing, f"{name} knows {', '.join(missing)} no longer"
    return flags, told


def check(folder: Path) -> Iterator[str]:
    """What was found of each, in words; raises AssertionError if one knows a flag no longer, or can't be asked."""
    for kind, source in SOURCES.items():
        place = folder / kind
        (home := place / "home").mkdir(parents=True)
        done = subprocess.run(source.install, cwd=place, timeout=1_200, check=False)
        assert done.returncode == 0, f"{kind} can't be installed from its registry"
        program, env = str(place / source.program), {"PATH": os.environ["PATH"], "HOME": str(home)}
        argv = TOOLS[kind].argv((), (), "a-model", 1.5)[1:]
        assert argv[: len(source.command)] == source.command
        flags, told = known_flags(kind, (program, *source.command), argv, home)
        assert "-" not in argv or "`-`" in told, f"{kind} takes its prompt no longer by -"
        found = presence_of(AgentSettings(name=kind, kind=kind, command=(program,), env=env, pass_env=()))
        assert not found.is_well
        assert "it is not logged in" in found.words, found.words
        yield f"{kind} knows {' '.join(flags)}; {found.words.removeprefix(program + ': ')}"
