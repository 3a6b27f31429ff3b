"""Tasks and agents together stay small enough to be read: whoever adds to them takes something away."""

from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDERS = ("pulse_core", "pulse_adapters", "upulse_cli/capabilities")
MOST = 5_000


def test_tasks_and_agents_have_fewer_than_five_thousand_lines_together() -> None:
    files = [
        file
        for above in FOLDERS
        for name in ("tasks", "agents")
        for file in (ROOT / above / name).rglob("*.py")
    ]
    assert len(files) > 30
    assert sum(len(file.read_text().splitlines()) for file in files) < MOST
