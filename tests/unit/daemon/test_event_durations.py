"""How long restarts and effects took, as a daemon measures it from the events of its life."""

from collections.abc import Sequence

from pulse_core.composition import FOLD
from pulse_core.daemon.event_durations import MOST_ACTIONS, OTHER, EventDurations
from pulse_core.model.kinds import (
    Effect,
    EffectAcked,
    EffectAttemptFailed,
    EffectExecuting,
    EngineRolledBack,
    ProcessDied,
    ProcessStopRequested,
    ProcessUp,
    SettingsLoaded,
)
from pulse_core.model.payload import Payload
from tests.events import event

UP = ProcessUp(pid=5, started=50, evidence="there")
DIED = ProcessDied(pid=5, evidence="gone", healthy=True)
Said = tuple[float, Payload, str]


def measured(*said: Said, before: Sequence[Said] = ()) -> EventDurations:
    """After these events, each at so many seconds; before: those that a daemon finds in the log when it starts."""
    rows = [
        event(seq, what, about, at=round(at * 1e6))
        for seq, (at, what, about) in enumerate((*before, *said), 1)
    ]
    durations = EventDurations()
    durations.begin(FOLD(FOLD.start, rows[: len(before)]))
    durations.on_events(rows[len(before) :])
    return durations


def wished(action: str) -> Effect:
    return Effect(action=action, key=f"{action}:x", params={}, reason="")


def test_a_restart_takes_from_the_death_until_it_is_up() -> None:
    took = measured((1, UP, "gateway"), (2, DIED, "gateway"), (4.5, UP, "gateway")).restarts
    assert (sum(took.counts), took.sum_us) == (1, 2_500_000)


def test_a_death_before_the_daemon_started_counts_too() -> None:
    assert (
        measured((9, UP, "gateway"), before=[(1, UP, "gateway"), (2, DIED, "gateway")]).restarts.sum_us
        == 7_000_000
    )


def test_first_starts_and_stops_on_purpose_are_no_restarts() -> None:
    stop = ProcessStopRequested(expires_us=60_000_000)
    meant = DIED.model_copy(update={"intended": True})
    never_up = meant.model_copy(update={"evidence": "not running yet; port 80 is held by process 7"})
    first = ((1, never_up, "gateway"), (2, UP, "gateway"))
    stopped = ((3, stop, "gateway"), (4, meant, "gateway"), (99, UP, "gateway"))
    given_up = ((100, DIED, "gateway"), (101, stop, "gateway"), (199, UP, "gateway"))
    assert not sum(measured(*first, *stopped, *given_up).restarts.counts)
    assert not sum(measured((9, UP, "gateway"), before=first[:1]).restarts.counts)


def test_a_process_that_was_taken_out_of_the_settings_while_it_was_down_was_not_restarted_since() -> None:
    out, back = (
        SettingsLoaded(digest="1", processes=("other",), gone=("gateway",)),
        SettingsLoaded(digest="2", processes=("gateway", "other")),
    )
    others = ((2, DIED, "other"), (99, UP, "other"))
    took = measured(
        (1, DIED, "gateway"), others[0], (3, out, ""), (90, back, ""), (98, UP, "gateway"), others[1]
    )
    assert (sum(took.restarts.counts), took.restarts.sum_us) == (1, 97_000_000)


def test_a_death_of_which_nobody_knows_when_it_was_is_not_measured() -> None:
    unseen = DIED.model_copy(update={"last_seen": 1})
    died, up = (9, unseen, "gateway"), (10, UP, "gateway")
    assert not sum(measured(died, up).restarts.counts)
    assert not sum(measured(up, before=[died]).restarts.counts)


def test_each_attempt_at_an_effect_is_measured_by_its_action() -> None:
    begun, failed = EffectExecuting(), EffectAttemptFailed(attempt=1, error="no", retry_us=5)
    done = EffectAcked(took_us=1)
    life: tuple[Said, ...] = ((1, begun, "id-1"), (2, failed, "id-1"), (5, begun, "id-1"), (9, done, "id-1"))
    for found in (
        measured((0, wished("tidy"), "tidy:x"), *life),
        measured(*life, before=[(0, wished("tidy"), "tidy:x")]),
    ):
        assert found.report()["effects"].keys() == {"tidy"}
        assert found.effects["tidy"].sum_us == 5_000_000
        assert sum(found.effects["tidy"].counts) == 2


def test_any_number_of_actions_is_told_in_bounded_room() -> None:
    said = list[Said]()
    for number in range(MOST_ACTIONS + 5):
        effect = f"id-{3 * number + 1}"
        said += [
            (0, wished(f"a{number}"), f"a{number}:x"),
            (0, EffectExecuting(), effect),
            (1, EffectAcked(took_us=1), effect),
        ]
    found = measured(*said)
    assert len(found.effects) == MOST_ACTIONS + 1
    assert sum(found.effects[OTHER].counts) == 5


def test_rollbacks_are_counted() -> None:
    assert (
        measured((1, EngineRolledBack(rejected="a"), "b"), (2, EngineRolledBack(rejected="c"), "d")).rollbacks
        == 2
    )
