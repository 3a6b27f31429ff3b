"""Runs with real programs and files, and no daemon: whom they run as, what they may have, and how ill ones end."""

import asyncio
import os
import subprocess
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.agents.disk_run_files import DiskRunFiles
from pulse_adapters.host.life_groups import LifeGroups
from pulse_adapters.host.programs import LifePrograms
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.workers.control_group import LIFE, NoControlGroups, home_groups
from pulse_adapters.workers.proc import start_time_of
from pulse_core.agents.limits import RunSample
from pulse_core.agents.projection import Run
from pulse_core.agents.run_files import RunFolder
from pulse_core.agents.settings import AGENTS
from pulse_core.composition import Settings
from pulse_core.model.errors import PulseError
from pulse_core.model.moment import Moment
from pulse_core.tasks.task import Project, Status, TaskState
from tests.engine_user import ROOT_ALONE, open_folder

NOW, TOKEN, PATIENCE_S = Moment(1_800_000_000_000_000, "boot", 1), 7, 30.0
TASK = TaskState("task_000001", "app", "Mend it", NOW, "eve", status=Status.EXECUTING, token=TOKEN)
NOBODY = 65534


@dataclass
class Runs:
    """Starts programs as runs of the agent `ada`, in the home; what it has started is ended with it."""

    home: Path
    groups: LifeGroups | None = None
    spawner: Spawner = field(default_factory=Spawner)

    def __post_init__(self) -> None:
        self.programs = LifePrograms(self.spawner, self.groups)
        self.ended = asyncio.Event()
        self.programs.listen(self.ended.set)
        self.runs: list[Run] = []

    async def start(self, *argv: str, project: Project = Project(), workspaces: str = "", **more: Any) -> Run:  # noqa: B008
        """A run of this command."""
        agent = {"name": "ada", "command": argv, **more}
        general = {"workspaces": workspaces} if workspaces else {}
        self.settings = Settings.model_validate({"agent": [agent], "agents": general})
        (self.agent,) = AGENTS.of(self.settings)
        self.files = DiskRunFiles(self.home, lambda: self.settings)
        id_ = str(uuid.uuid4())
        workspace = await self.files.workspace(TASK, project, self.agent.user)
        program = await self.files.program(id_, TOKEN, TASK, self.agent, workspace)
        main = await self.programs.start(id_, program)
        run = Run(id_, TASK.id, "ada", TOKEN, main.pid, main.started, NOW, workspace.path)
        self.runs.append(run)
        self.programs.watch(main)
        self.ended.clear()
        return run

    async def sample(self, run: Run) -> RunSample:
        seen, progress = await self.programs.look(run.main), await self.files.progress(run, self.agent)
        return RunSample(progress.output, progress.quiet_us, seen.memory)

    async def end(self, run: Run) -> int | None:
        """Its exit code, once it has ended by itself."""
        async with asyncio.timeout(PATIENCE_S):
            while (seen := await self.programs.look(run.main)).alive:
                await self.ended.wait()
                self.ended.clear()
        return seen.exit

    def output(self, run: Run) -> str:
        return RunFolder.of(self.home, run.id).output.read_text()

    async def close(self) -> None:
        for run in self.runs:
            await self.programs.stop(run.id, run.main, 0.0)
        self.programs.close()
        self.spawner.close()


@pytest.fixture
async def runs(tmp_path: Path) -> AsyncIterator[Runs]:
    made = Runs(tmp_path)
    yield made
    await made.close()


@pytest.fixture
def open_home() -> Iterator[Path]:
    """A home of the daemon's alone, in a folder that everybody may look into."""
    with open_folder() as folder:
        (folder / "home").mkdir(mode=0o700)
        yield folder / "home"


@ROOT_ALONE
async def test_an_agent_runs_as_its_user_in_a_folder_of_that_user(open_home: Path) -> None:
    runs, above = Runs(open_home), str(open_home.parent / "work")
    script = 'id -u; pwd; cat; echo "$HOME $PULSE_PROMPT_FILE-"; touch made'
    run = await runs.start("sh", "-c", script, user="nobody", workspaces=above)
    assert await runs.end(run) == 0
    place = f"{above}/nobody/{TASK.id}"
    assert runs.output(run).splitlines() == [str(NOBODY), place, "# Mend it", "/nonexistent -"]
    assert os.stat(f"{place}/made").st_uid == NOBODY
    with pytest.raises(
        PulseError, match=r"nobody may not enter .*; name another folder in \[agents\] workspaces"
    ):
        await runs.start("true", user="nobody")
    await runs.close()


@ROOT_ALONE
async def test_git_obeys_nothing_as_root_that_lies_in_a_repository_of_another_user(open_home: Path) -> None:
    runs, above = Runs(open_home), str(open_home.parent / "work")
    repository = open_home.parent / "repository"
    repository.mkdir()
    os.chown(repository, NOBODY, NOBODY)
    named = ("-c", "user.name=Ada", "-c", "user.email=ada@localhost")
    # A filter runs whatever the repository's own settings say, also for a `git status`.
    script = (
        f"git init -q -b main . && echo '* filter=spy' > .gitattributes && git config filter.spy.clean "
        f"'id -u >> {repository}/spied; cat' && git add -A && git {' '.join(named)} commit -q -m x"
    )
    subprocess.run(
        ("sh", "-c", script),
        cwd=repository,
        user=NOBODY,
        group=NOBODY,
        check=True,
        timeout=60,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
    )
    project = Project(repository=str(repository))
    run = await runs.start("touch", ".gitattributes", user="nobody", workspaces=above, project=project)
    assert await runs.end(run) == 0
    assert await runs.files.remove_workspace(run.workspace, project) == ""
    assert not Path(run.workspace).exists()
    assert set((repository / "spied").read_text().split()) == {str(NOBODY)}
    os.chown(repository, 0, 0)
    with pytest.raises(PulseError, match="is not nobody's; give the project a clone that is"):
        await runs.start("true", user="nobody", workspaces=above, project=project)
    await runs.close()


async def test_what_a_run_may_have_is_limited_by_its_control_group_or_that_is_said(tmp_path: Path) -> None:
    try:
        folder = home_groups(tmp_path)
    except NoControlGroups as error:
        folder, words = None, str(error)
    groups = LifeGroups(tmp_path)
    runs = Runs(tmp_path, groups)
    run = await runs.start("sleep", "1000", processes=50, memory=1 << 30, cpu_weight=20)
    if folder:
        missing = {"pids", "memory", "cpu"} - folder.controllers()
        words = f"control groups here don't limit {', '.join(sorted(missing))}" if missing else ""
        group = folder.child(LIFE + run.id)
        async with asyncio.timeout(PATIENCE_S):
            while run.pid not in group.members():
                await asyncio.sleep(0.002)
        wanted = {
            "pids": ("pids.max", "50"),
            "memory": ("memory.max", str(1 << 30)),
            "cpu": ("cpu.weight", "20"),
        }
        for file, value in (wanted[one] for one in folder.controllers()):
            assert (Path(group.path) / file).read_text().strip() == value
    assert await runs.programs.limits_fault() == words
    await runs.close()
    groups.close(wait=True)
    assert start_time_of(run.pid) is None


async def test_turns_are_counted_as_they_are_printed_each_once(runs: Runs) -> None:
    run = await runs.start("true", kind="claude")
    output, turn = RunFolder.of(runs.home, run.id).output, '{"type": "assistant", "message": {}}\n'
    assert await runs.end(run) == 0
    for printed, turns in (
        (turn * 3, 3),
        (turn[:9], 3),
        (turn[9:] + '{"type": "user"}\nassistant\n', 4),
        ("", 4),
    ):
        with output.open("a") as file:
            file.write(printed)
        assert (await runs.files.progress(run, runs.agent)).turns == turns
