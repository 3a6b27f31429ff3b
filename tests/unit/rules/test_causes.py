"""Which event an effect of survival follows from."""

import pytest

from pulse_core.model.kinds import Effect
from pulse_core.rules.causes import cause_of_effect
from pulse_core.testing import Story, given


def story() -> Story:
    told = given(settings={"process": [{"name": "web", "start": ["w"]}]})
    told.happened("process-died", "web", pid=7, evidence="gone", healthy=True)
    told.happened("condition-raised", "disk:/x", evidence="full", state="high")
    told.happened("condition-raised", "disk:/x", evidence="fuller", state="worse")
    told.happened("condition-raised", "network", evidence="one does not answer", state="degraded")
    return told


@pytest.mark.parametrize(
    ("action", "key", "params", "event"),
    [
        ("restart-process", "restart-process:web", {"process": "web"}, "event-1"),
        ("notify", "notify:flapping:web", {}, "event-1"),
        ("clean-paths", "clean-paths:/x", {"for_condition": "disk:/x"}, "event-3"),
        ("notify", "notify:resource:disk:/x", {}, "event-3"),
        ("restart-process", "restart-process:web", {"process": "web", "for_condition": "disk:/x"}, "event-3"),
        ("notify", "notify:network", {}, "event-4"),
        ("notify", "notify:network:quality", {}, "event-4"),
        ("restart-process", "restart-process:other", {"process": "other"}, ""),
    ],
)
def test_an_effect_follows_from_its_condition_or_from_what_happened_to_its_process_last(
    action: str, key: str, params: dict[str, str], event: str
) -> None:
    assert cause_of_effect(Effect(action=action, key=key, params=params), story().snapshot) == event


@pytest.mark.parametrize(
    ("action", "key", "params"),
    [
        ("restart-process", "restart-process:network", {"process": "network"}),
        ("notify", "notify:flapping:network", {}),
        ("notify", "notify:network", {}),
    ],
)
def test_a_process_may_have_the_name_of_a_condition(action: str, key: str, params: dict[str, str]) -> None:
    told = given(settings={"process": [{"name": "network", "start": ["n"]}]})
    told.happened("process-died", "network", pid=7, evidence="gone", healthy=True)
    told.happened("condition-raised", "network", evidence="nothing answers", state="down")
    expected = "event-2" if key == "notify:network" else "event-1"
    assert cause_of_effect(Effect(action=action, key=key, params=params), told.snapshot) == expected


def test_a_request_of_a_person_is_the_cause_of_what_follows_it() -> None:
    told = story()
    told.happened("process-restart-requested", "web")
    effect = Effect(action="restart-process", key="restart-process:web", params={"process": "web"})
    assert cause_of_effect(effect, told.snapshot) == "event-5"
