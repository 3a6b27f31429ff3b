"""Crashes of daemons, counted from the log alone, and what a start leaves out after so many."""

import pytest

from pulse_core.composition import FOLD
from pulse_core.daemon.safe_mode import left_out
from pulse_core.model.event import Event
from pulse_core.model.kinds import (
    DaemonHealthy,
    DaemonStarted,
    DaemonStopped,
    EngineDisabled,
    EngineEnabled,
    EnginePromoted,
    EngineRolledBack,
    LogRestored,
    PromoteRequested,
    RollbackRequested,
    SafeModeEntered,
    SafeModeLeft,
)
from pulse_core.model.payload import Payload
from pulse_core.projections.control import Control
from tests.events import SECOND, event

PARTS = ("plugins", "engine", "optional watchers")
KINDS: dict[str, Payload] = {
    "start": DaemonStarted(pid=1, version="1"),
    "stop": DaemonStopped(pid=1, reason="asked to stop"),
    "healthy": DaemonHealthy(),
    "safe": SafeModeEntered(crashes=3, left_out=("plugins",)),
    "left": SafeModeLeft(),
    "asked-rollback": EngineRolledBack(rejected="x", to="y"),
    "own-rollback": EngineRolledBack(rejected="x", to="y"),
}


def log(words: str) -> list[Event]:
    """Events from words, one second apart: `+90` lets so many seconds pass, `reboot` begins another boot."""
    events: list[Event] = []
    seconds, boot = 0, 0
    for word in words.split():
        seconds += 1
        if word.startswith("+"):
            seconds += int(word)
        elif word == "reboot":
            boot += 1
        else:
            one = event(len(events) + 1, KINDS[word], at=seconds * SECOND)
            cause = "a request" if word == "asked-rollback" else None
            events.append(one._replace(boot=f"boot-{boot}", cause=cause))
    return events


def control_after(words: str) -> Control:
    return FOLD(FOLD.start, log(words)).control


def test_of_a_log_that_was_put_back_it_is_not_known_how_its_last_daemon_ended_nor_what_happened_since() -> (
    None
):
    restored = LogRestored(source="/b", made_at=7 * SECOND, rows=2)
    begun = log("start start start")
    back = event(4, restored, at=90 * SECOND)._replace(boot="boot-0")
    state = FOLD(FOLD.start, [*begun, back]).control
    assert state.stopped == back.moment
    again = event(5, KINDS["start"], at=99 * SECOND)._replace(boot="boot-0")
    state = FOLD(FOLD.start, [*begun, back, again]).control
    assert (state.death, state.unwatched, state.has_gap, state.crashes) == ("", 7 * SECOND, True, 2)
    later = event(6, KINDS["start"], at=200 * SECOND)._replace(boot="boot-0")
    state = FOLD(FOLD.start, [*begun, back, again, later]).control
    assert (bool(state.death), state.has_gap) == (True, False)
    whole = event(4, restored.model_copy(update={"salvaged": 2}), at=90 * SECOND)._replace(boot="boot-0")
    assert FOLD(FOLD.start, [*begun, whole]).control.stopped is None, "all that it recorded is there"


@pytest.mark.parametrize(
    ("words", "crashes"),
    [
        ("start", 0),
        ("start start", 1),
        ("start start start start", 3),
        ("start +70 start", 1),  # never ready, or nothing could be recorded: no proof of health
        ("start +61 healthy +9 start", 0),
        ("start start start +61 healthy start", 0),
        ("start +61 healthy start start", 1),
        ("start +61 stop start", 0),
        ("start start stop start", 1),  # a clean stop is no crash, and no minute of health
        ("start stop start stop start stop start", 0),
        ("start start +61 stop start", 0),
        ("start reboot start reboot start", 0),
        ("start start reboot start start", 2),
        ("start start start +3700 start", 0),  # so far apart it is no loop
        ("start start start start safe +61 healthy start", 3),
        ("start start start start safe start", 4),
        ("start start start start safe stop start", 3),
        ("start start start start safe reboot start", 3),
        ("start start start start safe +3700 start", 4),
        ("start start start start safe left", 0),
        ("start start start start left start", 1),
        ("start start start start safe asked-rollback", 0),
        ("start start start start safe own-rollback", 3),
    ],
)
def test_starts_without_a_healthy_minute_are_counted(words: str, crashes: int) -> None:
    assert control_after(words).crashes == crashes


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("start start start start safe", ("plugins",)),
        ("start start start start safe +61 healthy", ("plugins",)),
        ("start start start start safe stop start", ("plugins",)),
        ("start start start start safe left", ()),
        ("start start start start safe asked-rollback", ()),
        ("start start start start safe own-rollback", ("plugins",)),
    ],
)
def test_safe_mode_lasts_until_it_is_left_by_a_person_a_rollback_or_an_hour(
    words: str, left: tuple[str, ...]
) -> None:
    control = control_after(words)
    assert control.left_out == left
    assert (control.safe is not None) == bool(left)


def test_it_is_safe_mode_since_it_was_first_entered() -> None:
    control = control_after("start start start start safe start safe")
    assert control.safe == log("start start start start safe")[-1].moment


@pytest.mark.parametrize(
    ("crashes", "parts", "left"),
    [
        (0, PARTS, ()),
        (2, PARTS, ()),
        (3, PARTS, PARTS[:1]),
        (4, PARTS, PARTS[:2]),
        (5, PARTS, PARTS),
        (99, PARTS, PARTS),
        (3, PARTS[1:], ("engine",)),
        (3, (), ()),
    ],
)
def test_each_crash_from_the_third_on_leaves_one_part_more_out(
    crashes: int, parts: tuple[str, ...], left: tuple[str, ...]
) -> None:
    assert left_out(crashes, parts) == left


def test_who_disabled_the_engine_is_kept_until_it_is_enabled_or_changed() -> None:
    first = event(1, EnginePromoted(previous="", watch_us=5), "a")
    disabled = event(2, EngineDisabled(why="it spins"))
    kept = FOLD(FOLD.start, [first, disabled]).engine
    assert kept.disabled_status() == {
        "since": "2001-09-09T01:46:42.000000Z",
        "by": "pulse",
        "why": "it spins",
    }
    assert FOLD(FOLD.start, [first, disabled, event(3, EngineEnabled())]).engine.disabled_status() is None
    for asked, answer in ((PromoteRequested(previous="a"), EnginePromoted(previous="a", watch_us=5)),
                          (RollbackRequested(), EngineRolledBack(rejected="a", to="z"))):  # fmt: skip
        for seq, is_disabled in ((2, True), (4, False)):
            request = event(seq, asked, "b")
            events = sorted([first, event(3, EngineDisabled()), request], key=lambda one: one.seq)
            changed = event(5, answer, "b")._replace(cause=request.id)
            assert (FOLD(FOLD.start, [*events, changed]).engine.disabled is not None) is is_disabled


def test_since_when_nobody_watched_before_a_start_is_known_after_a_stop_and_after_a_crash() -> None:
    def unwatched(*said: tuple[int, Payload]) -> int:
        rows = [event(seq, payload, at=at * SECOND) for seq, (at, payload) in enumerate(said, 1)]
        return FOLD(FOLD.start, rows).control.unwatched

    start, stop = KINDS["start"], KINDS["stop"]
    began = event(1, start, at=0).at
    assert unwatched((0, start)) == 0
    assert unwatched((0, start), (5, stop), (9, start)) == began + 5 * SECOND
    seen = DaemonStarted(pid=1, version="1", last_seen=began + 7 * SECOND)
    assert unwatched((0, start), (9, seen)) == began + 7 * SECOND
