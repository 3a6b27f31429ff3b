"""The flags that agents are called with, held against what the installed programs say they know.

Each is installed anew from its registry, into a folder of its own. Cursor's is in none: its flags are those of its
documentation.
"""

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
        told = subprocess.run(
            (program, *source.command, "--help"), env=env, capture_output=True, text=True, timeout=120, check=True
        ).stdout  # fmt: skip
        flags = [word for word in argv if word.startswith("-") and word != "-"]
        missing = [flag for flag in flags if not re.search(rf"(?<![\w-]){flag}(?![\w-])", told)]
        assert not missing, f"{kind} knows {', '.join(missing)} no longer"
        assert "-" not in argv or "`-`" in told, f"{kind} takes its prompt no longer by -"
        found = presence_of(AgentSettings(name=kind, kind=kind, command=(program,), env=env, pass_env=()))
        assert not found.is_well
        assert "it is not logged in" in found.words, found.words
        yield f"{kind} knows {' '.join(flags)}; {found.words.removeprefix(program + ': ')}"
