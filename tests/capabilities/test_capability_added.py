"""The page "Adding a capability" says what is true: its example runs in a daemon, and nothing else is edited."""

import re
from pathlib import Path

import pytest

from tests.capabilities.capability_tree import ROOT, Tree

PAGE = ROOT / "docs" / "adding-a-capability.md"
FILE = re.compile(r"^```python\n# (\S+\.py)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

LIFE = """
import asyncio

import pytest

from pulse_core.daemon.request_handler import Caller
from pulse_core.model.errors import Refused
from pulse_core.model.payload import Role
from pulse_core.reminders.events import ReminderDone, ReminderSet
from pulse_core.reminders.projection import REMINDERS
from tests.simulation.world import World, simulate

MINUTE = 60


def test_a_reminder_is_told_once_when_it_is_due() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        first = await world.ask(ReminderSet(after_us=MINUTE * 1_000_000, text="water"), "plants")
        await asyncio.sleep(5)
        seen = daemon.ticker.prev
        assert seen is not None
        assert [one.text for one in seen.of(REMINDERS).open.values()] == ["water"]
        assert daemon.report()["capabilities"] == {"reminders": ["reminders 1 open"]}
        assert world.events("effect") == []
        request = {"op": "state", "projection": "reminders"}
        (told,) = [one async for one in daemon.request_handler.answer(Caller(Role.AGENT, "agent"), request)]
        assert [one["text"] for one in told["value"]["open"].values()] == ["water"]

        await asyncio.sleep(MINUTE + 20)
        assert [event.subject for event in world.events("effect")] == [f"notify:reminder:{first.id}"]
        await asyncio.sleep(10 * MINUTE)
        assert len(world.events("effect")) == 1

        await world.ask(ReminderSet(after_us=1, text="more"), "plants")
        with pytest.raises(Refused, match="2 reminders are open already"):
            await world.ask(ReminderSet(after_us=1, text="too many"), "plants")
        with pytest.raises(Refused, match="no reminder 'nothing' is open"):
            await world.ask(ReminderDone(), "nothing")
        await world.ask(ReminderDone(), first.id)

        await world.end()
        kept = await world.checkpoints.load()
        assert "more" in kept["reminders"].state
        again = await world.start()
        assert [one.text for one in again.parts.view().of(REMINDERS).open.values()] == ["more"]

    simulate(story, {"reminders": {"most": 2}})
"""


@pytest.mark.timeout(400)
def test_the_example_of_the_page_runs_in_a_daemon(tmp_path: Path) -> None:
    files = {match[1]: match[2] for match in FILE.finditer(PAGE.read_text())}
    assert "pulse_core/reminders/capability.py" in files
    tree, home = Tree(tmp_path / "tree"), tmp_path / "home"
    tree.add("reminders", {**files, "tests/simulation/test_reminders.py": LIFE})
    life = tree.run(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "tests/simulation/test_reminders.py"
    )
    assert life.returncode == 0, life.stdout
    contracts = tree.run(
        "-c", "from importlinter.cli import lint_imports_command as lint; lint(['--no-cache'])"
    )
    assert contracts.returncode == 0, contracts.stdout

    tree.upulse(home, "init")
    assert "#most = 20" in (home / "config.toml").read_text()
    (home / "config.toml").write_text("[reminders]\nmost = 1\n")
    id_ = tree.upulse(home, "remind", "plants", "water them", "--in", "1h").strip()
    assert "reminders 1 open" in tree.upulse(home, "status")
    assert id_ in tree.upulse(home, "state", "reminders")
    refused = tree.run("-m", "upulse_cli", "remind", "plants", "again", "--in", "1h", home=home)
    assert (refused.returncode, "1 reminders are open already" in refused.stderr) == (1, True)
    (home / "config.toml").write_text("[reminders]\nmots = 1\n")
    faulty = tree.run("-m", "upulse_cli", "config", "check", home=home)
    assert "unknown key 'mots' (did you mean 'most'?)" in faulty.stderr + faulty.stdout
