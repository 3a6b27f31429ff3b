"""Runs a gate's tool, confined, on a copy of the author's files."""

import hashlib
import json
import os
import re
import signal
import site
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field

from pulse_adapters.sandbox.copy_tree import copy_tree
from pulse_adapters.sandbox.scratch_folder import Scratch
from pulse_adapters.workers import process_tree
from pulse_adapters.workers.environment import selected_variables
from pulse_adapters.workers.framing import Message, WorkerFault
from pulse_adapters.workers.host_groups import TOOLS, HostGroup, MakeGroup, no_host_group
from pulse_adapters.workers.host_process import with_way_out
from pulse_adapters.workers.messages import Limits, decode, parse
from pulse_core.ports.code_checks import GateFailed

PATIENCE = 120.0
"""Seconds that a tool may take."""
SCRATCH_BYTES, SCRATCH_FILES = 512 * 1024 * 1024, 20_000
MOST_TESTS = 1_000_000
SHOWN = 40
"""Lines of what a tool prints that its failure tells."""
_PULSE = str(Path(__file__).parents[2])
_LOOK, _PRINTED, _TOLD = 0.25, 64 * 1024, 64 * 1024
MEMORY = 3072
"""MiB of address space; mypy takes some 300 MiB of memory, and its threads reserve far more than they use."""
_FRAMES = re.compile(r"^/\S+:\d+: in .*\n(?: {4}.*\n)*", re.MULTILINE)
"""Of a short traceback, those of no file of the author's."""
_KERNEL = ("landlock", "seccomp", "rlimits")


@dataclass(frozen=True)
class ToolJob:
    """A tool and its words. readable: files of ours that it needs; writable: a folder whose content is kept.

    user: uid and gid that it takes on; known: the folder with what mypy has kept, of which it gets a copy.
    """

    tool: str
    words: Sequence[str]
    readable: Sequence[str] = ()
    writable: Sequence[str] = ()
    user: tuple[int, int] | None = None
    known: str = ""


class ToldByTool(NamedTuple):
    """What a tool tells besides what it prints. cage: which parts of it hold; of the tests how many ended how, the first
    that failed, and what broke pytest off."""

    cage: Mapping[str, bool | int | str | None] = {}
    tests: Mapping[str, Annotated[int, Field(ge=0, le=MOST_TESTS)]] | None = None
    first: str = ""
    broken: str = ""


class ToolResult(NamedTuple):
    """How a tool ended: its exit code, the end of what it printed, and what it told besides."""

    exit: int
    text: str
    told: ToldByTool

    @property
    def tail(self) -> str:
        """The last lines."""
        return "\n".join(self.text.splitlines()[-SHOWN:])

    @property
    def missing(self) -> Sequence[str]:
        """The parts of the cage that this kernel doesn't give."""
        cage = self.told.cage
        return [part for part in (*_KERNEL, *cage.keys() & {"scratch"}) if not cage.get(part)]


def run(source: Path, job: ToolJob, make_group: MakeGroup = no_host_group) -> ToolResult:
    """Run a tool on a copy of these files. Raises GateFailed if it can't be run, or takes too much of anything."""
    group = make_group(TOOLS, MEMORY)
    try:
        limits = SCRATCH_BYTES, SCRATCH_FILES
        with Scratch(None, *limits) as beneath, Scratch(None, *limits) as scratch:
            return _run(job, _laid_out(source, beneath.path, job.user), scratch, group)
    except OSError as error:
        raise GateFailed(f"{job.tool} could not be run: {error}") from error
    finally:
        group.end_now()


def _run(job: ToolJob, root: Path, scratch: Scratch, group: HostGroup) -> ToolResult:
    told, telling = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    with open(told, "rb", 0) as read, open(telling, "wb", 0), tempfile.TemporaryFile() as printed:
        child = subprocess.Popen(
            _argv(job, root, scratch, group, telling), cwd="/", env=_environment(job.tool, scratch.path),
            stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT, pass_fds=(telling,),
            start_new_session=True,
        )  # fmt: skip
        try:
            _wait(child, job.tool, scratch)
        finally:
            _end(child, job.user, group)
        if child.returncode == -signal.SIGKILL:
            raise GateFailed(
                with_way_out(f"{job.tool} was ended by SIGKILL, which is also how too much memory ends")
            )
        printed.seek(max(0, printed.seek(0, os.SEEK_END) - _PRINTED))
        text = (
            printed.read().decode("utf-8", "replace").strip().replace(f"{root}/", "").replace(str(root), ".")
        )
        return ToolResult(child.returncode, _FRAMES.sub("", text), _told(read.read(_TOLD) or b""))


def _wait(child: "subprocess.Popen[bytes]", tool: str, scratch: Scratch) -> None:
    """Wait until a tool has ended. Raises GateFailed for one that takes too much of anything."""
    until = time.monotonic() + PATIENCE
    while child.poll() is None:
        if time.monotonic() > until:
            raise GateFailed(f"{tool} did not end within {PATIENCE:g} s")
        if scratch.is_over():
            raise GateFailed(
                f"{tool} has written more than {SCRATCH_BYTES:,} bytes or {SCRATCH_FILES:,} files"
            )
        with suppress(subprocess.TimeoutExpired):
            child.wait(_LOOK)


def _argv(job: ToolJob, root: Path, scratch: Scratch, group: HostGroup, telling: int) -> Sequence[str]:
    order = {
        **asdict(job), "root": str(root), "scratch": scratch.path,
        "scratch_limits": (SCRATCH_BYTES, SCRATCH_FILES), "listable": _needed(job.tool), "tell": telling,
        "parent": os.getpid(), "group": group.path, "memory": MEMORY,
    }  # fmt: skip
    return (sys.executable, "-P", "-s", "-m", "pulse_adapters.sandbox.sandboxed_tool", json.dumps(order))


def _environment(tool: str, scratch: str) -> Mapping[str, str]:
    """An environment without secrets."""
    needed = [path for path in _needed(tool) if path not in site.getsitepackages()]
    return {
        **selected_variables("PATH", "LANG"),
        **({"PYTHONPATH": os.pathsep.join(needed)} if needed else {}),
        "HOME": scratch,
        "TMPDIR": scratch,
        "LOGNAME": "author",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }


def _needed(tool: str) -> Sequence[str]:
    """The folders in which Pulse and the tool are found."""
    spec = find_spec(tool)
    where = str(Path(spec.origin).parents[1]) if spec and spec.origin else _PULSE
    return list(dict.fromkeys((_PULSE, where)))


def _end(child: "subprocess.Popen[bytes]", user: tuple[int, int] | None, group: HostGroup) -> None:
    """Kill what is left of the tool's tree, and orphans of the engine's user where they may be its own."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    if user and not group.group:
        process_tree.kill_processes(
            process_tree.any_of(process_tree.in_session(child.pid), process_tree.orphans_of_user(user[0]))
        )


def _told(raw: bytes) -> ToldByTool:
    """What was told, line by line; what was said first counts, for the author's code may have written there, too."""
    found: Message = {}
    try:
        for line in raw.splitlines():
            found = {**parse(line, Limits(_TOLD, depth=4)), **found}
        return decode(ToldByTool, found)
    except WorkerFault:
        return ToldByTool()


def _laid_out(source: Path, beneath: str, user: tuple[int, int] | None) -> Path:
    """A copy, read-only, for us or for that user alone."""
    root = Path(beneath) / "engine"
    copy_tree(source, root)
    for file in root.rglob("*.py*"):
        _date(file)
    if user:
        os.chown(beneath, -1, user[1])
        os.chmod(beneath, 0o750)
    return root


def _date(file: Path) -> None:
    """Give a file the time that only this content has: mypy takes what has the same time and size for the same."""
    if file.is_file() and not file.is_symlink():
        moment = int.from_bytes(hashlib.sha256(file.read_bytes()).digest()[:4], "big") // 2
        os.utime(file, (moment, moment))
