"""The gates that look at files: Python compiles them, mypy and pytest are run on them in the sandbox."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pulse_adapters.sandbox.tool_sandbox import ToolJob, ToolResult, run
from pulse_adapters.workers.host_groups import MakeGroup, no_host_group
from pulse_core.ports.code_checks import GateFailed, GateSkipped

NO_TESTS = 5
"""How pytest exits that has run none."""
_DECIDING = re.compile(rb"# mypy: |\s*#\s*type:\s*ignore")
"""Comments by which a file would decide how strictly the whole of it is checked."""
ENDS = ("passed", "failed", "skipped", "xfailed", "xpassed", "deselected")


@dataclass(frozen=True)
class SandboxedChecks:
    """Implements `CodeChecks`.

    config: the settings of mypy that Pulse ships; work: the folder where a tool may keep things that no author's code
    can change; user: uid and gid as whom the tools run, if not as we do; group: makes the control group of each tool.
    """

    config: Path
    work: Callable[[], Path]
    user: tuple[int, int] | None = None
    group: MakeGroup = no_host_group

    def compiles(self, path: str) -> str:
        """Every file is Python."""
        root = Path(path)
        files = [file for file in sorted(root.rglob("*.py")) if file.is_file()]
        for file in files:
            try:
                compile(file.read_bytes(), file.name, "exec", dont_inherit=True)
            except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
                line, words = getattr(error, "lineno", None) or 1, next(iter(error.args), "it is too deep")
                raise GateFailed(f"{file.relative_to(root)}:{line}: {words}") from error
        return f"{len(files):,} file{'' if len(files) == 1 else 's'}"

    def types(self, path: str) -> str:
        """mypy finds nothing, as strict as Pulse ships it, whatever the files say of that."""
        _demand("mypy")
        if overrides := sorted(_overrides(Path(path))):
            raise GateFailed("\n".join(overrides))
        config, work = str(self.config), self.work()
        words = ("--config-file", config, "--cache-dir", str(work / "mypy"), "--no-error-summary", ".")
        result = run(
            Path(path), ToolJob("mypy", words, [config], [str(work)], self.user), make_group=self.group
        )
        if result.exit:
            raise GateFailed(result.tail or f"mypy ended with {result.exit}")
        return _sentence(result, *result.text.splitlines()[-1:])

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
