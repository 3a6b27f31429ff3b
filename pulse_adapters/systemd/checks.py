"""The doctor's checks of the unit that starts the daemon."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pulse_adapters.systemd import manager
from pulse_adapters.systemd.manager import Unit
from pulse_core.app.doctor import FAIL, OK, WARN, Finding


@dataclass(frozen=True)
class UnitChecks:
    """Checks of the unit of a home."""

    home: Path

    def unit(self) -> Iterator[Finding]:
        """Check whether systemd runs the daemon, from a unit file that is up to date."""
        installed = manager.installed(self.home)
        if installed is None:
            if Path("/run/systemd/system").is_dir():
                yield Finding("unit", WARN, "systemd does not start it at boot, or again if it dies",
                              "upulse daemon install")  # fmt: skip
            else:
                words = "systemd does not run this machine; whatever starts the daemon must keep it running"
                yield Finding("unit", OK, words)
            return
        text = installed.path.read_text(errors="replace")
        if text == installed.text():
            yield Finding("unit", OK, f"{installed.path} is up to date")
            return
        line = next((line for line in text.splitlines() if line.startswith("ExecStart=")), "")
        gone = not Path(line.partition('"')[2].partition('"')[0] or "/nowhere").exists()
        why = "names an interpreter that is gone" if gone else "is of another version"
        remedy = f"upulse daemon install{' --user' if installed.user else ''}"
        level = FAIL if gone else WARN
        yield Finding("unit", level, f"{installed.path} {why}", remedy, lambda: _rewrite(installed))


def _rewrite(unit: Unit) -> str:
    manager.install(unit.home, unit.user)
    return f"{unit.path} is written anew; it counts from the next start on"
