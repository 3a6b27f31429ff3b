"""The gates that look at files: Python compiles them, mypy and pytest are run on them in the sandbox."""

import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pulse_adapters.sandbox.tool_sandbox import ToolJob, ToolResult, run
from pulse_adapters.workers.host_groups import MakeGroup, no_host_group
from pulse_adapters.workers.untrusted_paths import remove_tree
from pulse_core.model.text import format_size, is_text
from pulse_core.ports.code_checks import GateFailed, GateSkipped

_PULSE = Path(__file__).parents[2] / "pulse_core"
NO_TESTS = 5
"""How pytest exits that has run none."""
_DECIDING = re.compile(rb"# mypy: |\s*#\s*type:\s*ignore")
"""Comments by which a file would decide how strictly the whole of it is checked."""
ENDS = ("passed", "failed", "skipped", "xfailed", "xpassed", "deselected")


@dataclass(frozen=True)
class SandboxedChecks:
    """Implements `CodeChecks`.

    config: the settings of mypy that Pulse ships, beside files that need them; cache: the folder where we keep things,
    which no author's code may write to; user: uid and gid as whom the tools run on an author's code, if not as we do;
    group: makes the control group of each tool.
    """

    config: Path
    cache: Callable[[], Path]
    user: tuple[int, int] | None = None
    group: MakeGroup = no_host_group

    def compiles(self, path: str) -> str:
        """Every file is Python."""
        root = Path(path)
        files = [file for file in sorted(root.rglob("*.py")) if file.is_file()]
        for file in files:
            if not is_text(name := str(file.relative_to(root))):
                raise GateFailed(f"{name} has a name that is not UTF-8, which mypy can't read; rename it")
            try:
                compile(file.read_bytes(), file.name, "exec", dont_inherit=True)
            except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
                line, words = getattr(error, "lineno", None) or 1, next(iter(error.args), "it is too deep")
                raise GateFailed(f"{name}:{line}: {words}") from error
        return f"{len(files):,} file{'' if len(files) == 1 else 's'}"

    def types(self, path: str) -> str:
        """mypy finds nothing, as strict as Pulse ships it, whatever the files say of that."""
        _demand("mypy")
        if overrides := sorted(_overrides(Path(path))):
            raise GateFailed("\n".join(overrides))
        result = self._mypy(Path(path), user=self.user, known=str(self.known_types()))
        return _sentence(result, *result.text.splitlines()[-1:])

    def known_types(self) -> Path:
        """The folder of what mypy knows of Pulse's own modules, made once: it takes seconds.

        Whoever could write there could decide what mypy finds. So it is made as our own user, of our files alone, and each
        gate gets a copy.
        """
        folder = self.cache() / f"mypy-{state_of_types()}"
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=folder.parent) as making:
                new = Path(making, "mypy")
                try:
                    self._mypy(self.config.parent, "--cache-dir", str(new), writable=[making])
                except GateFailed as error:  # mypy calls a full disk an internal error of its own
                    room = format_size(shutil.disk_usage(making).free)
                    words = f"mypy failed at Pulse's own modules, of which it keeps what it knows in {folder.parent}"
                    raise GateFailed(f"{words}, where {room} are free\n{error}") from error
                for one in (new, *new.rglob("*")) if self.user else ():  # in a folder of root's own
                    one.chmod(0o755 if one.is_dir() else 0o644)
                for old in {*folder.parent.glob("mypy*")} - {folder}:  # which another gate may read by now
                    remove_tree(old)
                with suppress(OSError):  # another one was first
                    os.rename(new, folder)
        return folder

    def _mypy(self, path: Path, *words: str, **how: Any) -> ToolResult:
        config = str(self.config)
        words = ("--config-file", config, "--no-error-summary", ".", *words)
        result = run(path, ToolJob("mypy", words, [config], **how), make_group=self.group)
        if result.exit:
            raise GateFailed(result.tail or f"mypy ended with {result.exit}")
        return result

    def tests(self, path: str) -> str:
        """Its own tests pass."""
        _demand("pytest")
        if not any(Path(path).glob("tests/**/test_*.py")):
            raise GateSkipped("it has no tests; upulse new makes one with each rule")
        words = ("-q", "-p", "no:cacheprovider", "--rootdir", ".", "tests")
        result = run(Path(path), ToolJob("pytest", words, user=self.user), make_group=self.group)
        _, ends, first, broken = result.told
        if broken:
            raise GateFailed(f"pytest broke off: {broken}")
        if ends is None:
            raise GateFailed(f"pytest ended before it could tell how the tests did\n{result.tail}".strip())
        counts = ", ".join(f"{number} {end}" for end in ENDS if (number := ends.get(end)) is not None)
        if result.exit not in (0, NO_TESTS) or ends.get("failed"):
            why = first or f"pytest ended with {result.exit}"
            raise GateFailed("; ".join(filter(None, (counts, why))) + f"\n{result.tail}".rstrip())
        if not ends.get("passed") and not ends.get("xfailed"):
            raise GateFailed(
                f"no test has passed: {counts or 'none was run'}; see tests/, conftest.py and addopts"
            )
        return _sentence(result, counts)


@cache
def state_of_types() -> str:
    """What changes with all that mypy finds in Pulse itself."""
    files = sorted((str(file), file.stat().st_mtime_ns) for file in _PULSE.rglob("*.py"))
    state = repr((sys.version, version("mypy"), version("pydantic"), files))
    return hashlib.sha256(state.encode()).hexdigest()[:16]


def _demand(program: str) -> None:
    """Skip, saying how it is installed, where a program is missing."""
    if find_spec(program) is None:
        raise GateSkipped(f"{program} is not installed: pip install {program}")


def _sentence(result: ToolResult, *words: str) -> str:
    """A gate's words, with what was not kept from the author's code."""
    if result.missing:
        words = (*words, f"isolation: partial (no {', '.join(result.missing)})")
    return "; ".join(words)


def _overrides(root: Path) -> Iterator[str]:
    """The places where a file would decide how strictly it is checked, or hide another one."""
    for file in root.rglob("*.py*"):
        name = file.relative_to(root)
        if file.suffix == ".pyi" and file.with_suffix(".py").exists():
            yield f"{name}:1: it hides {file.with_suffix('.py').name} from the gate; remove one of them"
        if file.suffix not in (".py", ".pyi") or not file.is_file():
            continue
        for number, line in enumerate(file.read_bytes().splitlines(), 1):
            if _DECIDING.match(line):
                words = line.decode("utf-8", "replace").strip()[:80]
                yield f"{name}:{number}: {words!r} is for a whole file; ignore one line, with its code, behind it"
