"""`env_file`: read at each start and by each probe, hidden in what is told, and refused with its line."""

import fcntl
import os
import re
import signal
from pathlib import Path

import pytest

from pulse_adapters.host.command_prober import LocalCommandProber
from pulse_adapters.host.environment_file import LARGEST, MOST_LINES, environment_of, read_environment_file
from pulse_adapters.host.health_prober import LocalHealthProber
from pulse_adapters.host.lives import Lives
from pulse_adapters.host.process_executors import RestartProcess
from pulse_adapters.host.process_identity import start_mark
from pulse_adapters.host.process_table import LinuxProcessTable
from pulse_adapters.host.settings_doubts import doubts_of
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.memory.network import MemoryProber
from pulse_adapters.workers.file_threads import FileThreads
from pulse_core.actions import RestartParams
from pulse_core.model.errors import PulseError
from pulse_core.ports.host import ProcessId
from pulse_core.settings.processes import ProcessSettings
from pulse_core.settings.settings import Settings
from tests.engine_user import open_folder
from tests.integration.host.host_scene import until, wished

WRITTEN = """\
# a comment
PLAIN=one
export QUOTED="two words"
API_KEY='abcd-1234'   # another one
EMPTY=

OURS=file
"""
SAYING = 'echo "$PLAIN/$QUOTED/$API_KEY/$EMPTY/$OURS"; exec sleep 1000'


def settings(path: Path, **more: object) -> Settings:
    one = {
        "name": "it",
        "start": ["sh", "-c", SAYING],
        "env": {"OURS": "settings"},
        "env_file": str(path),
        **more,
    }
    return Settings.model_validate({"process": [one]})


async def test_its_variables_are_given_at_each_start_and_env_wins(spawner: Spawner, tmp_path: Path) -> None:
    path, log = tmp_path / "it.env", tmp_path / "it.log"
    path.write_text(WRITTEN)
    table, chosen, known = (
        LinuxProcessTable(spawner, outputs=tmp_path),
        settings(path),
        dict[str, ProcessId](),
    )
    executor = RestartProcess(lambda: chosen, table, lambda: known, Lives(spawner, tmp_path), tmp_path)
    effect, event = wished("restart-process", process="it")
    result = await executor.execute(effect, RestartParams.model_validate(effect.params), event)
    await until(lambda: log.exists() and "one/two words/abcd-1234//settings\n" in log.read_text())
    found = ProcessId(result.data["pid"], result.data["started"])
    table.hold([found], lambda _: None)
    hidden = "one/two words/***//settings"
    assert await table.last_lines(chosen.process[0], found, result.data["logged"]) == hidden
    path.write_text(
        WRITTEN.replace("one", "1").replace("abcd-1234", "efgh-5678")
    )  # what it was given stays a secret
    assert await table.last_lines(chosen.process[0], found, result.data["logged"]) == hidden
    await executor.execute(effect, RestartParams.model_validate(effect.params), event)
    await until(lambda: "1/two words" in log.read_text())
    path.unlink()
    with pytest.raises(PulseError, match=r"env_file .*it.env can't be read: No such file or directory"):
        await executor.execute(effect, RestartParams.model_validate(effect.params), event)
    table.close()


async def test_a_probe_has_them_too(spawner: Spawner, tmp_path: Path) -> None:
    path = tmp_path / "it.env"
    path.write_text(WRITTEN)
    prober = LocalHealthProber(spawner, MemoryProber(), LocalCommandProber(spawner, str(tmp_path)))
    chosen = settings(path, exec=["sh", "-c", 'test "$PLAIN" = one']).process[0]
    answer = await prober.ask(chosen, None)
    assert answer.ok, answer
    await prober.close()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"A=1\nsecret-alone\n", "line 2 is no NAME=value"),
        (b"A=1\n\n\nnot one secret\nB=2\n", "line 4 is no NAME=value"),
        (b"=secret\n", "line 1 is no NAME=value"),
        (b"A='secret\n", "line 1 is no NAME=value"),
        (b"A=sec\0ret\n", "line 1 is no NAME=value"),
        (b"A=\xff\n", "is no text in UTF-8"),
        (b"A=" + b"s" * LARGEST, "it has more than 65,536 bytes"),
        (b"A=secret\n" * (MOST_LINES + 1), "has more than 1,000 lines"),
        (b"A=1\nB=secret" + b" \t" * 51 + b"s\n", "line 2 has more than 100 blanks in a row"),
    ],
)
def test_what_is_no_such_file_is_refused_with_its_line_and_not_its_content(
    tmp_path: Path, content: bytes, words: str
) -> None:
    path = tmp_path / "it.env"
    path.write_bytes(content)
    with pytest.raises(PulseError) as refused:
        read_environment_file(str(path))
    assert words in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_pipe_in_its_place_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "it.env")
    with pytest.raises(PulseError, match="it is no plain file"):
        read_environment_file(str(tmp_path / "it.env"))


@pytest.mark.parametrize("lease", [fcntl.F_WRLCK, fcntl.F_RDLCK])
def test_a_lease_on_it_is_not_waited_for_and_told(tmp_path: Path, lease: int) -> None:
    (path := tmp_path / "it.env").write_text("A=b\n")
    file = os.open(path, os.O_RDONLY)
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, lease)
        if lease == fcntl.F_RDLCK:
            assert read_environment_file(str(path)) == {"A": "b"}
        else:
            with pytest.raises(PulseError, match=r"it\.env is kept by a lease of another process"):
                read_environment_file(str(path))
    finally:
        os.close(file)
        signal.signal(signal.SIGIO, before)


async def test_a_check_of_the_settings_says_that_it_is_missing(tmp_path: Path) -> None:
    told = await doubts_of(settings(tmp_path / "none.env").process)
    assert "can't be read: No such file" in told["it"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts what runs as another user")
@pytest.mark.parametrize("key", ["env_file", "cwd"])
async def test_a_command_that_runs_as_root_is_given_none_that_the_user_of_the_process_may_have_written(
    spawner: Spawner, tmp_path: Path, key: str
) -> None:
    """By PATH or LD_PRELOAD that one would be root, and by a module that Python finds where it runs."""
    told, path, folder = tmp_path / "told", tmp_path / "it.env", tmp_path / "work"
    path.write_text("MINE=yes\n")
    folder.mkdir()
    argv, place = ["sh", "-c", f'echo "$MINE" >>{told}'], path if key == "env_file" else folder
    chosen = settings(path, user="nobody", command=argv, start=[], match="it", cwd=str(folder))
    table, known = LinuxProcessTable(spawner, outputs=tmp_path), dict[str, ProcessId]()
    executor = RestartProcess(lambda: chosen, table, lambda: known, Lives(spawner, tmp_path), tmp_path)
    effect, event = wished("restart-process", process="it")
    params = RestartParams.model_validate(effect.params)
    os.chown(place, 65534, 65534)
    refused = f"`command` runs as root, and others may change {key} {place}"
    with pytest.raises(PulseError, match=re.escape(refused)):
        await executor.execute(effect, params, event)
    assert refused in (await doubts_of(chosen.process))["it"]
    assert not told.exists()
    os.chown(place, 0, 65534)
    await executor.execute(effect, params, event)
    assert told.read_text() == "yes\n"
    table.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads what a user may not")
async def test_no_link_of_the_user_leads_to_what_only_root_may_read(tmp_path: Path) -> None:
    with open_folder() as place:
        (secret := place / "secret.env").write_text("SECRET=yes\n")
        secret.chmod(0o600)
        (theirs := place / "theirs").mkdir()
        link = theirs / "it.env"
        link.symlink_to(secret)
        os.chown(theirs, 65534, 65534)
        os.lchown(link, 65534, 65534)
        process = settings(link, user="nobody").process[0]
        with pytest.raises(PulseError, match=r"it\.env leads to .*, which nobody may not read"):
            await environment_of(process, FileThreads())
        secret.chmod(0o644)
        assert (await environment_of(process, FileThreads()))["SECRET"] == "yes"
        link.unlink()
        secret.chmod(0o600)
        secret.rename(link)  # as an administrator lays it there
        assert (await environment_of(process, FileThreads()))["SECRET"] == "yes"


def test_another_file_is_a_change_that_the_next_start_brings() -> None:
    without = ProcessSettings(name="it", start=("a",))
    marks = [start_mark(one) for one in (without, without.model_copy(update={"env_file": "/a"}))]
    assert marks[0] != marks[1]
