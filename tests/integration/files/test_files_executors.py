"""The executors of files, with real children."""

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pulse_adapters.files import executors
from pulse_adapters.files.executors import ArchiveSessions, CleanPaths
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.workers.environment import inherited_environment
from pulse_adapters.workers.proc import has_marker, live_processes
from pulse_adapters.workers.worker import Program
from pulse_core.actions import ArchiveParams, CleanParams
from pulse_core.model.errors import PulseError, Refused
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect, EffectAcked
from pulse_core.model.payload import encode
from pulse_core.ports.executor import Result, Safety
from pulse_core.settings.settings import Settings
from tests.integration.files.files_scene import EFFECT, archives, grow, ledger, left

SIDE = "from pulse_adapters.workers import child_side; child_side"


def resources(**chosen: Any) -> Settings:
    return Settings.model_validate({"resources": chosen})


def wished(action: str, id_: str = EFFECT) -> tuple[Effect, Event]:
    effect = Effect(action=action, key=action)
    now = SystemClock().now()
    return effect, Event(1, id_, *now, "effect", action, "pulse", "h", None, effect.model_dump_json())


class Cleaning:
    """The executor on these settings; `decide` changes them."""

    def __init__(self, place: Path, settings: Settings) -> None:
        self.settings = settings
        self.executor = CleanPaths(lambda: self.settings, place / "logs" / "cleaned.jsonl", place / "pulse")

    async def do(self, **params: Any) -> Result:
        chosen = CleanParams.model_validate(params)
        self.executor.check(chosen)
        effect, event = wished("clean-paths")
        return await self.executor.execute(effect, chosen, event)


@pytest.fixture
def cleaning(tmp_path: Path) -> Callable[..., Cleaning]:
    return lambda **chosen: Cleaning(tmp_path, resources(**chosen))


async def test_what_the_settings_name_is_cleaned_by_a_child(
    cleaning: Callable[..., Cleaning], tmp_path: Path
) -> None:
    grow(tmp_path, "cache/a", "cache/b/c", "other/a")
    result = await cleaning(clean=[str(tmp_path / "cache")], clean_age="0s").do(for_condition="disk:/")
    assert (result.data["files"], result.data["directories"], result.data["finished"]) == (2, 1, True)
    assert "faults" not in result.data
    assert left(tmp_path / "cache") == set()
    assert left(tmp_path / "other") == {"a"}
    assert [line["effect"] for line in ledger(tmp_path)] == [EFFECT] * 2


async def test_clean_age_is_what_the_settings_say_unless_the_effect_does(
    cleaning: Callable[..., Cleaning], tmp_path: Path
) -> None:
    grow(tmp_path, "cache/a")
    executor = cleaning(clean=[str(tmp_path / "cache")], clean_age="1h")
    assert (await executor.do()).data["kept"] == {"young": 1}
    assert (await executor.do(older_than_us=0)).data["files"] == 1


async def test_a_tilde_is_the_home_of_the_user(
    cleaning: Callable[..., Cleaning], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    grow(tmp_path, "ada/.cache/agent/a")
    executor = Cleaning(tmp_path, resources(clean=["~/.cache/agent"], clean_age="0s"))
    assert (await executor.do(roots=["~/.cache/agent"])).data["files"] == 1


async def test_a_dry_run_tells_what_would_go(cleaning: Callable[..., Cleaning], tmp_path: Path) -> None:
    grow(tmp_path, "cache/a")
    result = await cleaning(clean=[str(tmp_path / "cache")], clean_age="0s").do(dry_run=True)
    assert result.data["would"] == [[str(tmp_path / "cache" / "a"), 4096]]
    assert left(tmp_path / "cache") == {"a"}


async def test_what_came_of_odd_names_can_be_written_into_the_log(
    cleaning: Callable[..., Cleaning], tmp_path: Path
) -> None:
    odd = os.path.join(os.fsencode(tmp_path), b"\xff")
    os.makedirs(os.path.join(odd, b"\xfe"))
    (tmp_path / "link").symlink_to(os.fsdecode(odd))
    with open(os.path.join(odd, b"\xfe", b"\xfd"), "wb"):
        pass
    executor = cleaning(clean=[str(tmp_path / "link")], clean_age="0s")
    for dry in (True, False):
        result = await executor.do(dry_run=dry)
        assert result.data["files"] == 1
        encode(EffectAcked(took_us=1, result=dict(result.data)))


@pytest.mark.parametrize("root", ["{}/other", "{}/cache/..", "{}", "/", "{}/cache/inner", "{}/cach"])
def test_what_is_not_allowed_is_refused_with_what_would_allow_it(
    cleaning: Callable[..., Cleaning], tmp_path: Path, root: str
) -> None:
    grow(tmp_path, "cache/inner/a", "other/a")
    executor = cleaning(clean=[str(tmp_path / "cache")]).executor
    text = root.format(tmp_path)
    with pytest.raises(Refused, match=f'add "{os.path.normpath(text)}" to `clean` under .resources.'):
        executor.check(CleanParams(roots=(text,)))


def test_nothing_may_be_cleaned_until_it_is_named(cleaning: Callable[..., Cleaning]) -> None:
    with pytest.raises(Refused, match="nothing may be cleaned; name directories"):
        cleaning().executor.check(CleanParams())


def test_roots_are_compared_as_texts_without_a_look_at_the_disk(
    cleaning: Callable[..., Cleaning], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule's effects are checked in the event loop: a path may be long, and the disk one that does not answer."""
    grow(tmp_path, "cache/")
    (tmp_path / "link").symlink_to(tmp_path / "cache")
    executor = cleaning(clean=[str(tmp_path / "cache"), "/net/cache", "~/cache"]).executor
    for name in ("realpath", "exists", "islink"):
        monkeypatch.setattr(os.path, name, lambda *_: pytest.fail("looked at the disk"))
    home = os.path.expanduser("~/cache")
    executor.check(CleanParams(roots=(f"{tmp_path}/cache/", f"{tmp_path}/other/../cache", "/net/./cache")))
    executor.check(CleanParams(roots=("~/cache", home)))
    with pytest.raises(Refused, match=f'add "{tmp_path}/link" to `clean`'):
        executor.check(CleanParams(roots=(f"{tmp_path}/link",)))


@pytest.mark.parametrize("roots", [("/" + "a/" * 2_500,), ("/a",) * 101])
def test_roots_without_end_are_refused_before_they_are_compared(roots: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError, match="at most"):
        CleanParams(roots=roots)


async def test_what_is_no_longer_allowed_is_refused_when_it_would_be_cleaned(
    cleaning: Callable[..., Cleaning], tmp_path: Path
) -> None:
    grow(tmp_path, "cache/a")
    executor = cleaning(clean=["/elsewhere"], clean_age="0s").executor
    effect, event = wished("clean-paths")
    with pytest.raises(Refused):
        await executor.execute(effect, CleanParams(roots=(f"{tmp_path}/cache",)), event)
    assert left(tmp_path / "cache") == {"a"}


async def test_a_link_that_is_turned_later_is_not_followed(
    cleaning: Callable[..., Cleaning], tmp_path: Path
) -> None:
    grow(tmp_path, "cache/a", "other/a")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "cache")
    executor = cleaning(clean=[str(link)], clean_age="0s")
    assert (await executor.do()).data["files"] == 1
    link.unlink()
    link.symlink_to(tmp_path / "other")
    with pytest.raises(PulseError, match=r"leads to .*other now, and led to .*cache before"):
        await executor.do()
    assert left(tmp_path / "other") == {"a"}


async def test_what_belongs_to_all_is_not_cleaned_though_a_link_to_it_is_named(
    cleaning: Callable[..., Cleaning], tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to("/usr")
    with pytest.raises(PulseError, match="/usr belongs to the system"):
        await cleaning(clean=[str(tmp_path / "link")]).do(dry_run=True)


@pytest.mark.parametrize(
    "params",
    [
        {"roots": ["here"]},
        {"roots": ["a\0b"]},
        {"older_than_us": -1},
        {"limit_bytes": 0},
        {"x": 1},
        {"near": "x"},
    ],
)
def test_broken_params_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        CleanParams.model_validate(params)


def test_both_may_be_done_while_the_log_takes_nothing(tmp_path: Path) -> None:
    settings = resources(clean=["/x"])
    cleaning = CleanPaths(lambda: settings, tmp_path, tmp_path)
    archiving = ArchiveSessions(lambda: settings, tmp_path, tmp_path)
    assert cleaning.policy(CleanParams()).safety is Safety.IDEMPOTENT
    assert archiving.policy(ArchiveParams()).safety is Safety.VERIFY_FIRST


# Archiving


@pytest.fixture
def archiver(tmp_path: Path) -> Callable[..., ArchiveSessions]:
    def made(**sessions: Any) -> ArchiveSessions:
        settings = resources(sessions={"root": str(tmp_path / "sessions"), "keep": "0s", **sessions})
        return ArchiveSessions(lambda: settings, tmp_path / "archive", tmp_path / "pulse")

    return made


async def test_sessions_are_archived_by_a_child(
    archiver: Callable[..., ArchiveSessions], tmp_path: Path
) -> None:
    grow(tmp_path, "sessions/one/log", "sessions/two")
    effect, event = wished("archive-sessions")
    result = await archiver().execute(effect, ArchiveParams(for_condition="disk:/"), event)
    assert (result.data["sessions"], left(tmp_path / "sessions")) == (2, set())
    assert [file.name for file in archives(tmp_path)] == result.data["archives"]
    assert EFFECT in archives(tmp_path)[0].name


async def test_the_settings_say_which_where_and_how_long(
    archiver: Callable[..., ArchiveSessions], tmp_path: Path
) -> None:
    grow(tmp_path, "sessions/one", "else/where/sessions-20200101T000000Z-e-1.tar.gz")
    os.utime(tmp_path / "else" / "where" / "sessions-20200101T000000Z-e-1.tar.gz", (1, 1))
    effect, event = wished("archive-sessions")
    kept = await archiver(keep="1h").execute(effect, ArchiveParams(), event)
    assert kept.data["left"] == {"touched": 1}
    executor = archiver(archive=str(tmp_path / "else" / "where"), retain="1d")
    result = await executor.execute(effect, ArchiveParams(), event)
    assert result.data["expired"] == ["sessions-20200101T000000Z-e-1.tar.gz"]
    assert left(tmp_path / "else" / "where") == set(result.data["archives"])


def test_without_sessions_there_is_nothing_to_archive(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="name them as sessions"):
        ArchiveSessions(Settings, tmp_path, tmp_path).check(ArchiveParams())


async def test_what_cannot_be_archived_fails_in_words(
    archiver: Callable[..., ArchiveSessions], tmp_path: Path
) -> None:
    effect, event = wished("archive-sessions")
    with pytest.raises(PulseError, match="sessions is not there; name a directory"):
        await archiver().execute(effect, ArchiveParams(), event)


async def test_a_cancelled_run_ends_its_child_and_the_next_one_tidies_up(
    archiver: Callable[..., ArchiveSessions], tmp_path: Path
) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "large").write_bytes(os.urandom(1 << 20) * 200)
    executor, (effect, event) = archiver(), wished("archive-sessions")
    running = asyncio.create_task(executor.execute(effect, ArchiveParams(), event))
    until = time.monotonic() + 60
    while not any(file.name.endswith(".part") for file in (tmp_path / "archive").glob(".*")):
        assert time.monotonic() < until
        await asyncio.sleep(0.005)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    while any(
        has_marker(one.pid, EFFECT) for one in live_processes()
    ):  # it is killed, and may take a moment to be gone
        assert time.monotonic() < until
        await asyncio.sleep(0.005)
    assert left(tmp_path / "sessions") == {"large"}
    assert await executor.verify(effect, ArchiveParams(), event) is None
    assert archives(tmp_path) == []


async def test_an_interrupted_run_that_had_archived_is_finished(
    archiver: Callable[..., ArchiveSessions], tmp_path: Path
) -> None:
    grow(tmp_path, "sessions/one")
    executor, (effect, event) = archiver(), wished("archive-sessions")
    await executor.execute(effect, ArchiveParams(), event)
    finished = await executor.verify(effect, ArchiveParams(), event)
    assert finished is not None
    assert finished.data["interrupted"]
    _, another = wished("archive-sessions", "0198c0de-0000-7000-8000-000000000002")
    assert await executor.verify(effect, ArchiveParams(), another) is None


@pytest.mark.wall_clock
async def test_the_event_loop_goes_on_meanwhile(
    archiver: Callable[..., ArchiveSessions], tmp_path: Path
) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "it").write_bytes(os.urandom(1 << 20) * 20)
    effect, event = wished("archive-sessions")
    running = asyncio.create_task(archiver().execute(effect, ArchiveParams(), event))
    worst = 0.0
    while not running.done():
        before = time.monotonic()
        await asyncio.sleep(0.005)
        worst = max(worst, time.monotonic() - before)
    assert running.result().data["sessions"] == 1
    assert worst < 0.25


# Children that misbehave


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise RuntimeError('oh')", "clean ended with status 1: .*RuntimeError: oh"),
        ("", "clean ended with status 0"),
        ("import os; os.write(3, bytes(4)); input()", "clean said what is no JSON"),
        (f"{SIDE}.answer_once(lambda order: [])", "should be a valid dictionary"),
        (f"{SIDE}.send({{'error': 'no luck'}})", "^no luck$"),
    ],
)
async def test_a_child_that_fails_is_a_failure_in_words(
    code: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Program((sys.executable, "-c", code), inherited_environment())
    monkeypatch.setattr(executors, "module_program", lambda *_, **__: broken)
    with pytest.raises(PulseError, match=words):
        await executors.ask("clean", {}, seconds=10, effect=EFFECT)
