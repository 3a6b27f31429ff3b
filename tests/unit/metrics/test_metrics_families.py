"""Metrics as Prometheus wants them, of every status there can be."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pulse_adapters.metrics.families import MetricsInput, families
from pulse_adapters.metrics.page import Page
from tests.unit.metrics.metrics_standings import STANDING, SYSTEM

PAGE = Path(__file__).parents[3] / "docs" / "operations.md"
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(seen: MetricsInput) -> Samples:
    """Every sample that a scraper would read."""
    text = Page(lambda: seen, "1.2").served()[0].decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float:
    return found[name, tuple(sorted(labels.items()))]


@pytest.fixture(scope="module")
def found() -> Samples:
    return samples(MetricsInput(True, STANDING, {"events.db": 10}))


@pytest.mark.parametrize(
    ("expected", "name", "labels"),
    [
        (1, "pulse_up", {}),
        (10, "pulse_home_bytes", {"what": "events.db"}),
        (1767225600.5, "pulse_start_time_seconds", {}),
        (0, "pulse_paused", {}),
        (42, "pulse_log_rows_total", {}),
        (3, "pulse_log_unwritten_events", {}),
        (0, "pulse_log_damaged", {}),
        (2, "pulse_shed_level", {}),
        (100, "pulse_ticks_total", {}),
        (0.0005, "pulse_tick_last_seconds", {}),
        (0.008, "pulse_tick_p99_seconds", {}),
        (90, "pulse_tick_duration_seconds_bucket", {"le": "0.001"}),
        (99, "pulse_tick_duration_seconds_bucket", {"le": "0.005"}),
        (100, "pulse_tick_duration_seconds_bucket", {"le": "+Inf"}),
        (100, "pulse_tick_duration_seconds_count", {}),
        (0.06, "pulse_tick_duration_seconds_sum", {}),
        (2, "pulse_engine_rollbacks_total", {}),
        (1, "pulse_restart_duration_seconds_bucket", {"le": "0.1"}),
        (6, "pulse_restart_duration_seconds_count", {}),
        (9, "pulse_restart_duration_seconds_sum", {}),
        (4, "pulse_effect_duration_seconds_bucket", {"le": "0.01", "action": "restart-process"}),
        (5, "pulse_effect_duration_seconds_count", {"action": "restart-process"}),
        (0.5, "pulse_effect_duration_seconds_sum", {"action": "restart-process"}),
        (1, "pulse_engine_info", {"commit": "c0ffee"}),
        (1, "pulse_engine_up", {}),
        (3, "pulse_engine_rule_errors", {}),
        (1, "pulse_engine_rules_quarantined", {}),
        (4, "pulse_engine_host_restarts", {}),
        (1767225600, "pulse_engine_rollback_time_seconds", {}),
        (1, "pulse_effects", {"state": "pending"}),
        (2, "pulse_effects", {"state": "executing"}),
        (3, "pulse_effects_settled_total", {"outcome": "acked"}),
        (6, "pulse_effects_settled_total", {"outcome": "cancelled"}),
        (1, "pulse_process_up", {"process": "gateway"}),
        (0, "pulse_process_up", {"process": 'odd "one"\n'}),
        (1, "pulse_process_state", {"process": 'odd "one"\n', "state": "flapping"}),
        (2, "pulse_process_restarts_total", {"process": "gateway"}),
        (1, "pulse_conditions_raised", {}),
        (1767225600, "pulse_condition_since_seconds", {"condition": "disk:/", "state": "high"}),
        (2, "pulse_notices_standing", {}),
        (1, "pulse_notices_waiting", {}),
        (0.5, "pulse_cpu_ratio", {}),
        (3000, "pulse_memory_available_bytes", {}),
        (0.0025, "pulse_self_loop_late_seconds", {}),
        (0.1, "pulse_pressure_ratio", {"resource": "memory", "kind": "full"}),
        (7, "pulse_disk_free_bytes", {"path": "/"}),
        (1, "pulse_target_up", {"target": "one.example"}),
        (0.0125, "pulse_target_latency_seconds", {"target": "one.example"}),
        (0, "pulse_target_up", {"target": "http://127.0.0.1:4000/"}),
    ],
)
def test_what_stands_is_a_number(found: Samples, expected: float, name: str, labels: dict[str, str]) -> None:
    assert value(found, name, **labels) == pytest.approx(expected)


def test_what_was_not_measured_is_left_out(found: Samples) -> None:
    assert ("pulse_disk_used_ratio", (("path", "/gone"),)) not in found
    assert ("pulse_target_latency_seconds", (("target", "http://127.0.0.1:4000/"),)) not in found
    bare = samples(MetricsInput(False, {}))
    assert {name for name, _ in bare} == {"pulse_build_info", "pulse_up"}
    assert value(bare, "pulse_up") == 0


@pytest.mark.parametrize("missing", sorted(STANDING))
def test_no_part_of_a_status_has_to_be_there(missing: str) -> None:
    part = {name: held for name, held in STANDING.items() if name != missing}
    assert value(samples(MetricsInput(True, part)), "pulse_up") == 1


def test_a_pause_damage_and_shed_work_are_seen() -> None:
    odd: dict[str, Any] = {
        "paused": {"since": "", "by": "me", "why": ""},
        "log": {"rows": 1, "unwritten": 0, "damage": "row 7"},
        "shed": None,
    }
    seen = samples(MetricsInput(True, {**STANDING, **odd}))
    assert value(seen, "pulse_paused") == value(seen, "pulse_log_damaged") == 1
    assert value(seen, "pulse_shed_level") == 0


def test_every_number_of_the_system_is_told() -> None:
    told = {name for name, _ in samples(MetricsInput(True, STANDING))}
    bare = {name for name, _ in samples(MetricsInput(True, {**STANDING, "vitals": {}}))}
    plain = [field for field, held in SYSTEM.items() if isinstance(held, (int, float))]
    assert len(
        [name for name in told - bare if not name.startswith(("pulse_disk", "pulse_t", "pulse_press"))]
    ) == len(plain)


def test_names_follow_the_conventions() -> None:
    for family in families(MetricsInput(True, STANDING, {"x": 1}), "1"):
        assert re.fullmatch(r"pulse_[a-z0-9_]+", family.name)
        assert family.documentation.endswith(".")
        assert not re.search(r"_(ms|us|mb|percent|total)$", family.name)


def test_the_alert_rules_and_the_dashboard_use_metrics_that_there_are() -> None:
    names = {name for name, _ in samples(MetricsInput(True, STANDING, {"x": 1}))}
    alerts, dashboard = (PAGE.parent / "monitoring" / name for name in ("alerts.yml", "grafana.json"))
    panels = json.loads(dashboard.read_text())["panels"]
    for expressions in (
        re.findall("expr: (.*)", alerts.read_text()),
        [one["targets"][0]["expr"] for one in panels],
    ):
        used = set(re.findall(r"pulse_[a-z0-9_]+", " ".join(expressions)))
        assert len(expressions) > 5
        assert used
        assert used <= names
    # Of two metrics with the same labels, `or` shows the first one alone: it passes over the name.
    assert not [one for panel in panels for one in panel["targets"] if " or " in one["expr"]]


def test_every_metric_is_on_the_page_of_operations() -> None:
    page = PAGE.read_text()
    names = {name for name, _ in samples(MetricsInput(True, STANDING, {"x": 1}))}
    assert not [name for name in sorted(names) if f"`{name}" not in page]


def test_restarts_are_not_said_to_have_worked() -> None:
    """As in the status, those count that ended again while they were starting, and starts at the end of a stop."""
    told = {
        family.name: family.documentation for family in families(MetricsInput(True, STANDING, {"x": 1}), "1")
    }
    assert (
        told["pulse_process_restarts"]
        == "Restarts and later starts that were carried out, whatever became of them."
    )
