"""What a rule host says is believed only after it was checked, and of what it has not loaded it may say nothing."""

from typing import Any

import pytest

from pulse_adapters.rule_host.replies import FoldReply, HistoryReply, LoadedNames, LoadReply, ReplayReply
from pulse_adapters.workers.framing import WorkerFault
from pulse_adapters.workers.messages import decode

NAMES = LoadedNames({"mine": "rules/mine.py:1"}, {"engine", "rule:mine"})
EFFECT = {"action": "note", "key": "k", "rule": "mine"}
GOOD: dict[str, Any] = {"effects": [EFFECT], "tick_ms": 1, "notes": [], "layers": [], "faults": []}
LAYER = ["mine", "added", [], 3]


@pytest.mark.parametrize("wanted", [5, "promote", {"promote": 1}, [5]])
def test_kinds_that_are_no_list_of_texts_are_refused(wanted: Any) -> None:
    with pytest.raises(WorkerFault, match=r"valid (frozenset|string)"):
        decode(LoadReply, {"projections": {"own": ["1", wanted]}})


@pytest.mark.parametrize("seq", [2**70, -1, 1.5, "one"])
def test_a_row_that_no_log_has_is_refused(seq: Any) -> None:
    with pytest.raises(WorkerFault, match="kept"):
        decode(HistoryReply, {"kept": ["1", seq, "{}"]})


@pytest.mark.parametrize("kept", [["1", 8, "{}"], ["1", 7, "{"], ["1", 7, ""], ["1", 7, "9" * 5_000]])
def test_a_kept_value_that_no_later_host_could_take_is_refused(kept: Any) -> None:
    with pytest.raises(WorkerFault, match="a projection's value"):
        decode(HistoryReply, {"kept": kept}).state(7)
    with pytest.raises(WorkerFault, match="kept"):
        decode(HistoryReply, {"kept": ["1", 7, "0" * 300_000]})


def test_what_fits_is_taken() -> None:
    reply = decode(FoldReply, {**GOOD, "layers": [LAYER], "faults": [["rule:mine", "it failed"]]})
    result = reply.result(9, NAMES)
    assert [(one.rule, one.tick) for one in result.verdict.effects] == [("mine", 9)]
    assert result.faults == (("rule:mine", "it failed"),)


@pytest.mark.parametrize(
    "whose", ["daemon", "rule:process_watchdog", "rule:", "watcher:network", "x" * 2_000]
)
def test_a_host_may_blame_only_what_it_has_loaded(whose: str) -> None:
    with pytest.raises(WorkerFault, match="which it has not loaded") as caught:
        decode(FoldReply, {**GOOD, "faults": [[whose, "it failed"]]}).result(1, NAMES)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("rule", ["process_watchdog", "", ["mine"], None, 7, 10**4000])
def test_a_host_may_wish_only_for_its_own_rules(rule: Any) -> None:
    with pytest.raises(WorkerFault, match="which it has not loaded"):
        decode(FoldReply, {**GOOD, "effects": [{**EFFECT, "rule": rule}]}).result(1, NAMES)
    with pytest.raises(WorkerFault):
        decode(FoldReply, {**GOOD, "layers": [[rule, "added", [], 3]]}).result(1, NAMES)


@pytest.mark.parametrize(
    "layer",
    [
        ["mine", "won", [], 3],
        ["mine", "added", [], -1],
        ["mine", "added", [], 2**50],
        ["m\n", "added", [], 1],
    ],
)
def test_a_layer_that_no_onion_has_is_refused(layer: Any) -> None:
    with pytest.raises(WorkerFault, match=r"layers\.0"):
        decode(FoldReply, {**GOOD, "layers": [layer]})


@pytest.mark.parametrize(
    "more",
    [
        {"not_after": 2**70}, {"not_after": -1}, {"samples": [2**70]}, {"samples": [-1]},
        {"key": "a\nb"}, {"key": "x" * 501}, {"action": ""}, {"params": 7}, {"nobody": "knows"},
    ],
)  # fmt: skip
def test_an_effect_that_does_not_fit_is_a_fault_of_its_rule_alone(more: Any) -> None:
    result = decode(FoldReply, {**GOOD, "effects": [{**EFFECT, **more}, EFFECT]}).result(1, NAMES)
    assert [one.key for one in result.verdict.effects] == ["k"]
    assert [(fault.whose, "(rules/mine.py:1)" in fault.message) for fault in result.faults] == [
        ("rule:mine", True)
    ]


@pytest.mark.parametrize(
    "forged",
    [
        {"told": [[4, GOOD]]}, {"told": [[3, GOOD]], "done": 1}, {"done": 3}, {"outcomes": [["other", "passed", 1]]},
    ],
)  # fmt: skip
def test_a_replay_tells_of_the_ticks_that_it_was_asked_for(forged: Any) -> None:
    reply = decode(
        ReplayReply, {"told": [[2, GOOD]], "outcomes": [["mine", "passed", 1]], "done": 2, **forged}
    )
    with pytest.raises(WorkerFault):
        reply.batch(NAMES, [2, 3])


def test_nobody_loads_what_is_pulses_own_or_was_not_asked_for() -> None:
    for forged in ({"rules": ["process_watchdog"]}, {"plugins": ["other"]}):
        with pytest.raises(WorkerFault, match="which is not its own"):
            decode(LoadReply, forged).names(["one"])
    names = decode(LoadReply, {"rules": ["mine", "more"], "defined": ["a.py:1"], "plugins": ["one"]}).names(
        ["one"]
    )
    assert names.places == {"mine": "a.py:1", "more": ""}
    assert "plugin:one" in names.owners


@pytest.mark.parametrize(
    "forged",
    [
        {"rules": ["a\nb"]}, {"rules": [""]}, {"rules": ["x" * 201]}, {"rules": ["x"] * 2_001}, {"sandbox": {"user": True}},
        {"projections": {"a\x00": ["1", None]}}, {"watchers": [7]}, {"error": 7}, {"roots": {"/": ""}},
    ],
)  # fmt: skip
def test_a_forged_load_is_refused(forged: Any) -> None:
    with pytest.raises(WorkerFault):
        decode(LoadReply, forged)
