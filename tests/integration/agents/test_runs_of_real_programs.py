"""Runs with real programs and files, and no daemon: whom they run as, what they may have, and how ill ones end."""

import asyncio
import json
import os
import subprocess
import tracemalloc
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.agents.disk_run_files import KEPT, MOST_KEPT, DiskRunFiles
from pulse_adapters.host.life_groups import LifeGroups
from pulse_adapters.host.programs import LifePrograms
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.workers.control_group import LIFE, NoControlGroups, home_groups
from pulse_adapters.workers.environment import EFFECT_MARK
from pulse_adapters.workers.proc import has_marker, live_processes, start_time_of
from pulse_core.agents.events import AgentRunEnded
from pulse_core.agents.failures import failure_of
from pulse_core.agents.limits import RunSample, excess_output, reason_to_pause, reason_to_stop
from pulse_core.agents.projection import AgentRuns, Run
from pulse_core.agents.run_files import RunFolder, Workspace
from pulse_core.agents.settings import AGENTS
from pulse_core.composition import Settings
from pulse_core.model.errors import PulseError
from pulse_core.model.moment import Moment
from pulse_core.ports.host import ProcessId
from pulse_core.tasks.events import TaskAcked
from pulse_core.tasks.task import Project, Status, TaskState
from tests.engine_user import ROOT_ALONE, open_folder
from tests.long_form import sampled

NOW, TOKEN, PATIENCE_S = Moment(1_800_000_000_000_000, "boot", 1), 7, 60.0
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
async def test_git_obeys_nothing_as_root_that_lies_in_a_repository_of_another_user(
    open_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULSE_SECRET_OF_ROOT", "x")
    runs, above = Runs(open_home), str(open_home.parent / "work")
    repository = open_home.parent / "repository"
    repository.mkdir()
    os.chown(repository, NOBODY, NOBODY)
    named = ("-c", "user.name=Ada", "-c", "user.email=ada@localhost")
    # A filter runs whatever the repository's own settings say, also for a `git status`.
    script = (
        f"git init -q -b main . && echo '* filter=spy' > .gitattributes && git config filter.spy.clean "
        f"'(id -u; env | grep SECRET) >> {repository}/spied; cat' && git add -A && git {' '.join(named)} commit -q -m x"
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


@pytest.mark.parametrize("end", ["\n", "\r\n"])
async def test_a_record_is_read_whatever_its_texts_hold_that_unicode_takes_for_the_end_of_a_line(
    runs: Runs, end: str
) -> None:
    """As Node's own encoder leaves it there."""
    run = await runs.start("true", kind="claude")
    words = "one\u2028two\u2029three\x85four"
    said = (
        {"type": "assistant", "message": {"id": "m1", "content": words, "usage": {"output_tokens": 5}}},
        {"type": "result", "subtype": "success", "is_error": False, "result": words},
    )
    assert await runs.end(run) == 0
    lines = (json.dumps(one, ensure_ascii=False) + end for one in said)
    RunFolder.of(runs.home, run.id).output.write_bytes("".join(lines).encode())
    printed = await runs.files.progress(run, runs.agent)
    assert (printed.turns, printed.tokens) == (1, 5)
    answer = await runs.files.answer(run, runs.agent)
    assert (answer.done, answer.text) == (True, words)


HOUR = 3_600_000_000
ILL: dict[str, tuple[str, dict[str, Any], str]] = {
    "endless": (
        "while :; do echo more; done | head -c 100000; exec sleep 1000",
        {},
        "it took longer than 1 h",
    ),
    "deaf": ("trap '' TERM; sleep 1000 & sleep 1000; sleep 1000", {}, "it took longer than 1 h"),
    "silent": ("exec sleep 1000", {"silence": "1us"}, "it printed nothing for"),
    "a gigabyte": (
        "head -c 1G /dev/zero; exec sleep 1000",
        {"output": 2_000_000},
        "it printed more than 1.9 MiB",
    ),
    "children": (
        "setsid sleep 1000 & setsid sh -c 'sleep 1000 & sleep 1000' & exec sleep 1000",
        {},
        "it took longer than 1 h",
    ),
}
GARBAGE = (
    "head -c 300000 /dev/urandom",
    r"printf '{\"type\": \"result\"'",
    "echo null; echo '[]'; echo 7",
    ":",
)


@pytest.mark.parametrize("name", sampled(ILL, 2))
async def test_an_ill_program_is_ended_with_all_that_came_out_of_it(runs: Runs, name: str) -> None:
    script, more, words = ILL[name]
    run = await runs.start("sh", "-c", script, **more)
    now = NOW.plus(HOUR if "took longer" in words else 0)
    async with asyncio.timeout(PATIENCE_S):
        why = ""
        while not why:
            sample = await runs.sample(run)
            held = reason_to_pause(run, runs.agent, sample, AgentRuns(), now)
            why = reason_to_stop(run, TASK, runs.agent, sample, now) or held
            await asyncio.sleep(0.01)
        while name == "children" and len(left_of(run)) < 4:
            await asyncio.sleep(0.01)
    assert words in why
    await runs.programs.stop(run.id, run.main, 0.05)
    assert left_of(run) == []
    answer, code = await runs.files.answer(run, runs.agent), await runs.end(run)
    assert failure_of(answer, code, why) == why
    printed = await runs.files.progress(run, runs.agent)  # as a daemon sees it that starts now
    assert printed.output <= runs.agent.output + 1
    assert excess_output(runs.agent, printed) == (words if name == "a gigabyte" else "")
    await runs.files.clean(run, runs.agent.output, [run.id])
    assert (await runs.files.progress(run, runs.agent)).output <= MOST_KEPT


def left_of(run: Run) -> list[int]:
    """The live processes that came out of a run."""
    return [one.pid for one in live_processes() if has_marker(one.pid, run.id, EFFECT_MARK)]


async def test_what_a_program_leaves_that_ended_by_itself_is_ended_too(runs: Runs) -> None:
    run = await runs.start("sh", "-c", "setsid sleep 1000 & echo done")
    assert await runs.end(run) == 0
    await runs.programs.stop(run.id, run.main, 0.0)  # as `clean-agent-run` does
    assert left_of(run) == []
    assert (await runs.files.answer(run, runs.agent)).text == "done"


@pytest.mark.parametrize(
    ("script", "kind", "code"),
    [
        ("exit 7", "command", 7),
        ("kill -9 $$", "command", -9),
        ("exit 200", "command", 200),
        ("exit 7", "claude", None),
    ],
)
async def test_how_it_ended_is_known_to_a_daemon_that_did_not_start_it_unless_its_output_says_so(
    runs: Runs, script: str, kind: str, code: int | None
) -> None:
    run = await runs.start("sh", "-c", script, kind=kind)
    await runs.end(run)
    assert await runs.files.exit_code(run) == code


@pytest.mark.parametrize("kind", sampled(["command", "claude", "codex", "cursor", "hermes"], 4))
@pytest.mark.parametrize("script", GARBAGE)
async def test_garbage_is_no_result_and_breaks_nothing(runs: Runs, kind: str, script: str) -> None:
    run = await runs.start("sh", "-c", script, kind=kind)
    code = await runs.end(run)
    answer = await runs.files.answer(run, runs.agent)
    failure = failure_of(answer, code, "")
    assert failure == ("" if kind in ("command", "hermes") else answer.error)
    ended = AgentRunEnded(run=run.id, exit=code, error=failure[:4_000], usage=dict(answer.usage))
    assert TaskAcked(token=TOKEN, result=answer.text).result == answer.text
    assert json.loads(ended.model_dump_json())["error"] == failure[:4_000]


@pytest.mark.parametrize("kind", ["command", "claude"])
async def test_an_error_has_no_secrets_since_people_are_told_of_it_elsewhere(runs: Runs, kind: str) -> None:
    said = "no model: key sk-ant-abcdef1234567890, user 8f3kd02kd9qlw04jf81z"
    printed = json.dumps({"type": "result", "is_error": True, "result": said}) if kind == "claude" else said
    env = {"SERVICE_ACCOUNT": "8f3kd02kd9qlw04jf81z"}
    run = await runs.start("sh", "-c", f"echo '{printed}'; exit 2", kind=kind, env=env)
    assert await runs.end(run) in (2, None)
    assert (await runs.files.answer(run, runs.agent)).error == "no model: key ***, user ***"


async def test_of_a_long_output_the_answer_stays_when_the_middle_is_cut(runs: Runs) -> None:
    said = '{"type": "result", "subtype": "success", "result": "done"}'
    script = f"head -c {MOST_KEPT + (4 << 20)} /dev/zero; echo; echo '{said}'"
    run = await runs.start("sh", "-c", script, kind="claude")
    assert await runs.end(run) == 0
    output = RunFolder.of(runs.home, run.id).output
    for size in (
        output.stat().st_size,
        MOST_KEPT,
    ):  # the first is what a daemon finds that has to record it again
        assert (await runs.files.answer(run, runs.agent)).text == "done"
        assert output.stat().st_size == size
        await runs.files.clean(run, runs.agent.output, [run.id])
    assert (await runs.files.output(run, 100)).endswith(said + "\n")


async def test_what_a_run_has_left_behind_is_found_by_its_marks_and_by_nothing_else(runs: Runs) -> None:
    script = "setsid sleep 86391 & echo $!; env -u PULSE_AGENT setsid sleep 86392 & echo $!"
    run = await runs.start("sh", "-c", script)
    assert await runs.end(run) == 0
    left, unmarked = map(int, runs.output(run).split())
    async with asyncio.timeout(PATIENCE_S):
        found = await runs.programs.orphans(str(runs.home), {""})
        while [one.pid for one in found] != [
            left
        ]:  # who is just being executed shows no mark, or that of `env`
            await asyncio.sleep(0.02)
            found = await runs.programs.orphans(str(runs.home), {""})
    assert [(one.pid, one.effect, one.agent) for one in found] == [(left, run.id, "ada")]
    assert found[0].memory > 0
    assert await runs.programs.orphans(str(runs.home), {"nobody"}) == []
    assert await runs.programs.orphans("/elsewhere", {""}) == []
    await runs.programs.stop(run.id, ProcessId(found[0].pid, found[0].started), 0.0)
    assert start_time_of(left) is None
    assert start_time_of(unmarked) is None  # it bears the mark of the run all the same
    assert await runs.programs.orphans(str(runs.home), {""}) == []


async def test_what_has_taken_off_the_marks_of_its_run_is_found_by_its_control_group(tmp_path: Path) -> None:
    try:
        home_groups(tmp_path)
    except NoControlGroups as error:
        pytest.skip(str(error))
    groups = LifeGroups(tmp_path)
    runs = Runs(tmp_path, groups)
    run = await runs.start("sh", "-c", "(env -i setsid sleep 86393 & echo $!); sleep 3")
    assert await runs.end(run) == 0
    left = int(runs.output(run))
    found = [one for one in await runs.programs.orphans(str(tmp_path), {""}) if one.pid == left]
    assert [(one.effect, one.agent) for one in found] == [(run.id, "")]
    await runs.programs.stop(run.id, ProcessId(found[0].pid, found[0].started), 0.0)
    assert start_time_of(left) is None
    await runs.close()
    groups.close(wait=True)


async def test_a_pipe_in_the_place_of_an_output_holds_up_nobody(runs: Runs) -> None:
    run = await runs.start("true")
    output = RunFolder.of(runs.home, run.id).output
    assert await runs.end(run) == 0
    output.unlink()
    os.mkfifo(output)
    assert (await runs.files.progress(run, runs.agent)).output == 0
    with pytest.raises(PulseError, match="its output can't be read"):
        await runs.files.answer(run, runs.agent)
    await runs.files.clean(run, 1, [run.id])


async def test_what_a_run_at_work_prints_stays_however_many_have_begun_after_it(runs: Runs) -> None:
    run = await runs.start("sh", "-c", "echo so; exec sleep 86393")
    folder = RunFolder.of(runs.home, run.id)
    os.utime(folder.path, (0, 0))
    others = [RunFolder.of(runs.home, f"later-{number}").path for number in range(KEPT + 3)]
    for number, other in enumerate(others):
        other.mkdir()
        os.utime(other, (number + 1, number + 1))
    await runs.files.clean(replace(run, id=others[-1].name), 1, [run.id])
    assert folder.token.exists()
    assert [other.exists() for other in others[:4]] == [False, False, False, True]


async def test_an_output_of_short_lines_is_never_parted_as_a_whole_which_would_hold_up_the_loop(
    runs: Runs,
) -> None:
    run = await runs.start("true", kind="claude")
    assert await runs.end(run) == 0
    RunFolder.of(runs.home, run.id).output.write_bytes(b"xx\n" * (1 << 19))
    tracemalloc.start()
    try:
        await runs.files.progress(run, runs.agent)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20, "its lines would take as much besides"
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("written", [0, 4_000_000_000])
async def test_no_clock_that_is_set_makes_a_run_silent_or_lively(runs: Runs, written: int) -> None:
    run = await runs.start("true")
    assert await runs.end(run) == 0
    first = await runs.files.progress(run, runs.agent)
    os.utime(RunFolder.of(runs.home, run.id).output, (written, written))
    second, third = [await runs.files.progress(run, runs.agent) for _ in range(2)]
    assert 0 == first.quiet_us < second.quiet_us < third.quiet_us < 3_600_000_000


@ROOT_ALONE
async def test_a_link_in_the_place_of_a_task_s_folder_leads_root_nowhere(open_home: Path) -> None:
    runs, above, secret = Runs(open_home), str(open_home.parent / "work"), open_home / "secret"
    secret.mkdir()
    run = await runs.start("true", user="nobody", workspaces=above)
    assert await runs.end(run) == 0
    Path(run.workspace).rmdir()
    Path(run.workspace).symlink_to(secret)
    assert await runs.files.remove_workspace(run.workspace, Project()) == "it is a link by now"
    with pytest.raises(PulseError, match="no workspace can be made"):
        await runs.start("true", user="nobody", workspaces=above)
    program = await runs.files.program("late", TOKEN, TASK, runs.agent, Workspace(run.workspace))
    with pytest.raises(PulseError, match="cannot be entered"):
        await runs.programs.start("late", program)
    assert os.stat(secret).st_uid == 0
    await runs.close()


async def test_on_a_full_disk_a_daemon_that_comes_after_a_crash_knows_how_much_a_run_had_printed(
    tmp_path: Path,
) -> None:
    """Its output is cut to make room for the record of its end, and nobody comes to write that."""
    argv = ("-t", "tmpfs", "-o", "size=8m", "tmpfs", str(tmp_path))
    if subprocess.run(("mount", *argv), capture_output=True, timeout=PATIENCE_S, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    runs = Runs(tmp_path)
    try:
        run = await runs.start("sh", "-c", "head -c 9999999 /dev/zero; true", output=2 << 20)
        await runs.end(run)
        with suppress(OSError), (tmp_path / "rest").open("wb", 0) as rest:
            while True:
                rest.write(bytes(4_096))
        for _ in range(2):
            await runs.files.answer(run, runs.agent)
            assert RunFolder.of(tmp_path, run.id).output.stat().st_size == 1 << 20
            next_files = DiskRunFiles(tmp_path, lambda: runs.settings)
            printed = await next_files.progress(run, runs.agent)
            assert printed.output == (2 << 20) + 1
            assert excess_output(runs.agent, printed) == "it printed more than 2.0 MiB"
    finally:
        await runs.close()
        subprocess.run(("umount", "-l", str(tmp_path)), check=True, timeout=PATIENCE_S)
