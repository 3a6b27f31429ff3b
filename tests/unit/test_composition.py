"""What the core and its capabilities add up to."""

import pytest

from pulse_core import composition
from pulse_core.capability import SurvivalRule
from pulse_core.composition import ALL_RULES, FOLD, KINDS, LOADED, SURVIVAL, load_capabilities, order_rules
from pulse_core.model.verdict import Verdict
from pulse_core.projections.state import CORE, Snapshot
from pulse_core.rules import Inner
from pulse_core.rules.onion import rule_name
from pulse_core.settings.settings import Settings
from pulse_core.settings.settings_group import SettingsGroup


async def outer(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    return await inner(prev, curr)


async def middle(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    return await inner(prev, curr)


async def first(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    return await inner(prev, curr)


async def second(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    return await inner(prev, curr)


def test_the_rules_of_the_reflex_stand_in_their_fixed_order() -> None:
    """Manners outermost, then what takes back harm, then what heals, causes before their symptoms."""
    assert [rule_name(rule) for rule in SURVIVAL] == [
        "kill_switch", "blast_radius", "silence", "panic_rollback", "auto_rollback", "safe_mode",
        "process_watchdog", "restore_config", "usage_guard", "resource_guard", "llm_watchdog", "check_watchdog",
        "network_watchdog", "error_escalate",
    ]  # fmt: skip


def test_rules_of_capabilities_are_inside_of_all_survival_rules() -> None:
    assert ALL_RULES[: len(SURVIVAL)] == SURVIVAL
    assert ALL_RULES[len(SURVIVAL) :] == composition.RULES


def test_survival_rules_of_capabilities_stand_where_they_say_the_earlier_one_outside() -> None:
    more = [SurvivalRule(first, "outer"), SurvivalRule(second, "outer")]
    assert order_rules([outer, middle], more) == (outer, first, second, middle)


def test_a_place_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="not in list"):
        order_rules([outer], [SurvivalRule(first, "nowhere")])


def test_every_projection_kind_and_group_is_there_once() -> None:
    projections = [one.name for one in CORE]
    projections += [one.name for capability in LOADED for one in capability.projections]
    assert list(FOLD.projections) == projections
    assert len(set(projections)) == len(projections)
    for capability in LOADED:
        assert {kind.kind for kind in capability.kinds} <= KINDS.keys()
        assert set(capability.admits) <= {kind.kind for kind in capability.kinds}
        assert {group.name for group in capability.settings} <= Settings.model_fields.keys()


def test_a_group_of_settings_that_is_there_already_is_refused() -> None:
    before = Settings.extensions
    try:
        with pytest.raises(TypeError, match=r"the settings \[daemon\] are there already"):
            Settings.extend((SettingsGroup("daemon", int, 0),))
    finally:
        Settings.extensions = before


def test_a_folder_whose_capability_has_another_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Module:
        CAPABILITY = LOADED[0]

    monkeypatch.setattr(composition, "import_module", lambda name: Module)
    with pytest.raises(TypeError, match=f"pulse_core/other/ calls itself '{LOADED[0].name}'"):
        load_capabilities(["other"])
