"""A real run that goes on by guidance that has changed: the kernel holds it until somebody acknowledges, or it is ended."""

import re
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from pulse_adapters.workers.proc import start_time_of
from tests.integration.agents.agent_home import settings
from tests.integration.agents.test_agents_at_work import home as home
from tests.integration.agents.test_agents_at_work import task
from tests.integration.cli.cli_home import CliHome, eventually
from upulse_cli.capabilities.guidance.wiring import guidance_service
from upulse_cli.options import open_home


def begun(home: CliHome, root: Path, then: str, place: Path) -> tuple[str, dict[str, Any]]:
    """A task, and its run in a project whose guidance changes."""
    home.upulse("daemon", "stop")
    home.configure(settings(place), f'[guided_runs]\nafter = "1s"\nthen = "{then}"')
    home.upulse("guidance", "add", str(root))
    home.start_daemon()
    id_ = home.upulse("task", "add", "app", "Mend it", "--prompt", "wait").out.strip()

    def live() -> dict[str, Any] | None:
        return next(iter(home.upulse("agents", "ps", "--json").json), None)

    run = eventually(live, "the agent to begin")
    (root / ".pulse/new").write_text("a smaller patch")
    (root / ".pulse/new").replace(root / ".pulse/guidance.md")
    return id_, run


def acknowledge(home: CliHome, root: Path) -> None:
    """What a person does, whose client asks what is pending."""
    service, log = guidance_service(open_home(str(home.path)))
    with closing(log):
        pending = service.should_interrupt(str(root), None)["pending_replan_event_id"]
        assert service.acknowledge(str(root), pending)["accepted"]


@pytest.mark.timeout(240)
def test_a_run_is_held_by_the_kernel_until_the_change_is_acknowledged(home: CliHome, tmp_path: Path) -> None:
    root = tmp_path / "repository"
    id_, run = begun(home, root, "pause", tmp_path)
    process = psutil.Process(run["pid"])
    eventually(lambda: process.status() == psutil.STATUS_STOPPED, "the run to be held")
    paused = ("events", "--kind", "agent-run-paused", "--json")
    eventually(
        lambda: "guidance.md" in home.upulse(*paused).out, "the reason"
    )  # recorded once all of it is held
    assert "held: guidance.md in " in home.upulse("agents", "ps").out
    acknowledge(home, root)
    eventually(lambda: process.status() != psutil.STATUS_STOPPED, "the run to go on")
    shown = eventually(
        lambda: re.findall("agent-run-paused .*", home.upulse("task", "show", id_).out)[1:], "that"
    )
    assert "it goes on: what has changed is acknowledged" in shown[0]
    (Path(run["workspace"]) / "go").touch()
    eventually(lambda: task(home, id_)["status"] == "closed", "the task to be closed")


@pytest.mark.timeout(240)
def test_a_run_is_ended_that_does_not_acknowledge(home: CliHome, tmp_path: Path) -> None:
    _, run = begun(home, tmp_path / "repository", "stop", tmp_path)
    eventually(lambda: start_time_of(run["pid"]) is None, "the run to be ended")
    said = ("events", "--kind", "agent-run-stop-requested", "--kind", "agent-run-ended", "--json")
    words = eventually(
        lambda: [one["data"] for one in home.upulse(*said).lines][:2][1:], "that to be recorded"
    )
    assert words[0]["run"] == run["run"]
    assert "has not acknowledged that in 1 s" in home.upulse(*said).lines[0]["data"]["why"]
