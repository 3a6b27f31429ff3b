"""Values of SQL are bound in their order: Python 3.12.0 to 3.12.3 take `?1` for a name, and warn of every use."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_placeholder_has_a_number() -> None:
    files = [
        path
        for room in ("pulse_core", "pulse_adapters", "upulse_cli")
        for path in (ROOT / room).rglob("*.py")
    ]
    assert files
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"[=<>(,] ?\?[0-9]", line)
    ]
    assert not found
