"""Finds settings in files that would weaken their own checks: only the gate decides how strict those are."""

import re
from collections.abc import Iterator
from pathlib import Path

_DECIDING = re.compile(rb"# mypy: |\s*#\s*type:\s*ignore")
"""Comments by which a file would decide how strictly the whole of it is checked."""


def gate_overrides(root: Path) -> Iterator[str]:
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
