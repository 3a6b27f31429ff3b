"""The current state as families of metrics. Names follow the conventions of Prometheus: base units, `_total`."""

import platform
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

Standing = Mapping[str, Any]
"""What `upulse status --json` prints: the value of `pulse_core.app.compute_status`."""


class MetricsInput(NamedTuple):
    """One sample: whether the daemon answered, its status, and sizes of the home's files."""

    answers: bool
    standing: Standing
    sizes: Mapping[str, int] = {}


class GaugeField(NamedTuple):
    """A gauge that is one field of a sample: its name, help text, field, and unit factor."""

    name: str
    says: str
    field: str
    worth: float = 1.0


OF_SYSTEM = (
    GaugeField("pulse_cpu_ratio", "Use of all CPUs together, 0 to 1.", "cpu"),
    GaugeField("pulse_cpu_busiest_ratio", "Use of the busiest CPU, 0 to 1.", "cpu_max"),
    GaugeField("pulse_memory_used_ratio", "Memory in use, 0 to 1.", "memory"),
    GaugeField("pulse_memory_available_bytes", "Memory that is available.", "memory_available"),
    GaugeField("pulse_memory_total_bytes", "All memory of the machine.", "memory_total"),
    GaugeField("pulse_swap_used_ratio", "Swap in use, 0 to 1.", "swap"),
    GaugeField("pulse_swap_total_bytes", "All swap of the machine.", "swap_total"),
    GaugeField("pulse_load1", "Average length of the run queue over one minute.", "load1"),
    GaugeField("pulse_load5", "Average length of the run queue over five minutes.", "load5"),
    GaugeField("pulse_load15", "Average length of the run queue over a quarter of an hour.", "load15"),
    GaugeField("pulse_self_cpu_ratio", "What the daemon used of one core lately.", "self_cpu"),
    GaugeField("pulse_self_resident_memory_bytes", "Resident memory of the daemon.", "self_rss"),
    GaugeField(
        "pulse_self_loop_late_seconds",
        "How late the daemon's loop was at worst lately.",
        "loop_late_ms",
        1e-3,
    ),
)
OF_DISKS = (
    GaugeField("pulse_disk_used_ratio", "Space in use of the file system that holds a path, 0 to 1.", "used"),
    GaugeField("pulse_disk_free_bytes", "Space that is free there.", "free"),
    GaugeField("pulse_disk_inodes_used_ratio", "Inodes in use there, 0 to 1.", "inodes"),
)
OF_TARGETS = (
    GaugeField("pulse_target_up", "Whether a target of [network] or [[llm]] answered when asked last.", "ok"),
    GaugeField("pulse_target_latency_seconds", "How long its answer took.", "latency_ms", 1e-3),
)


def families(seen: MetricsInput, version: str) -> Iterator[Metric]:
    """Every metric of one sample; what was not measured is left out."""
    built = GaugeMetricFamily(
        "pulse_build_info", "The version that serves this.", labels=("version", "python")
    )
    built.add_metric((version, platform.python_version()), 1)
    yield built
    yield GaugeMetricFamily("pulse_up", "Whether the daemon answered when asked last.", float(seen.answers))
    yield _labelled("pulse_home_bytes", "Size of what lies in the home.", "what", seen.sizes)
    standing = seen.standing
    yield from _of_daemon(standing)
    yield from _of_work(standing)
    yield from _of_life(standing.get("since_start") or {})
    yield from _of_engine(standing.get("engine") or {})
    yield from _of_processes(standing.get("processes", ()))
    yield from _of_conditions(standing)
    yield from _of_vitals(standing.get("vitals", {}))


def _of_daemon(standing: Standing) -> Iterator[Metric]:
    daemon, log = standing.get("daemon", {}), standing.get("log", {})
    if since := daemon.get("since"):
        yield _gauge("pulse_start_time_seconds", "When the daemon started, in Unix time.", _seconds(since))
    if "paused" in standing:
        yield _gauge("pulse_paused", "Whether the kill switch is thrown.", standing["paused"] is not None)
    if "rows" in log:
        yield CounterMetricFamily("pulse_log_rows", "Events in the log.", log["rows"])
    if "unwritten" in log:
        words = "Events that no disk took yet, held in memory."
        yield _gauge("pulse_log_unwritten_events", words, log["unwritten"])
        yield _gauge("pulse_log_damaged", "Whether the log is damaged.", bool(log.get("damage")))
    if "shed" in standing:
        level = (standing["shed"] or {}).get("level", 0)
        yield _gauge(
            "pulse_shed_level", "How many measures Pulse has taken to use less itself, 0 to 4.", level
        )


def _of_work(standing: Standing) -> Iterator[Metric]:
    tick, effects = standing.get("tick", {}), dict(standing.get("effects", {}))
    if "count" in tick:
        yield CounterMetricFamily("pulse_ticks", "Ticks, over all lives of the daemon.", tick["count"])
    for name, field in (("pulse_tick_last_seconds", "last_ms"), ("pulse_tick_p99_seconds", "p99_ms")):
        if tick.get(field) is not None:
            which = "the last tick" if field == "last_ms" else "99 of 100 of the last 1,000 ticks at most"
            yield _gauge(name, f"How long {which} took.", tick[field] / 1e3)
    if durations := tick.get("durations"):
        words = "How long ticks took, since the daemon started."
        yield _histogram("pulse_tick_duration_seconds", words, {(): durations})
    standing_now = {state: effects.pop(state) for state in ("pending", "executing") if state in effects}
    yield _labelled("pulse_effects", "Effects that are not settled.", "state", standing_now)
    settled = CounterMetricFamily("pulse_effects_settled", "Effects that are settled.", labels=("outcome",))
    for outcome, count in effects.items():
        settled.add_metric((outcome,), count)
    yield settled


def _of_life(life: Mapping[str, Any]) -> Iterator[Metric]:
    if not life:
        return
    words = "Rollbacks of the engine since the daemon started."
    yield CounterMetricFamily("pulse_engine_rollbacks", words, life["rollbacks"])
    words = "How long restarts took, from the death of a process until it was up again."
    yield _histogram("pulse_restart_duration_seconds", words, {(): life["restarts"]})
    words = "How long attempts at effects took."
    of_each: dict[tuple[str, ...], Any] = {
        (action,): durations for action, durations in life["effects"].items()
    }
    yield _histogram("pulse_effect_duration_seconds", words, of_each, ("action",))


def _of_engine(engine: Mapping[str, Any]) -> Iterator[Metric]:
    if not engine.get("commit"):
        return
    info = GaugeMetricFamily("pulse_engine_info", "The commit of the engine in force.", labels=("commit",))
    info.add_metric((engine["commit"],), 1)
    yield info
    yield _gauge("pulse_engine_up", "Whether a host runs that commit.", engine["runs"] == engine["commit"])
    words = "Errors of rules and projections since that commit is in force, 100 at most."
    yield _gauge("pulse_engine_rule_errors", words, engine["errors"])
    words = "Rules that are not run until another commit is in force."
    yield _gauge("pulse_engine_rules_quarantined", words, len(engine["quarantined"]))
    yield _gauge("pulse_engine_host_restarts", "How often its host was started again.", engine["restarts"])
    if engine["rolled_back"]:
        words = "When the last rollback was done, in Unix time."
        yield _gauge("pulse_engine_rollback_time_seconds", words, _seconds(engine["rolled_back"]))


def _of_processes(processes: Sequence[Mapping[str, Any]]) -> Iterator[Metric]:
    up = GaugeMetricFamily("pulse_process_up", "Whether a guarded process is up.", labels=("process",))
    words = "The state that a guarded process is in."
    state = GaugeMetricFamily("pulse_process_state", words, labels=("process", "state"))
    # One that ended again while it was starting counts, as in the status.
    said = "Restarts and later starts that were carried out, whatever became of them."
    restarts = CounterMetricFamily("pulse_process_restarts", said, labels=("process",))
    for process in processes:
        name = process["name"]
        up.add_metric((name,), process["state"] == "up")
        state.add_metric((name, process["state"]), 1)
        restarts.add_metric((name,), process["restarts"])
    yield from (up, state, restarts)


def _of_conditions(standing: Standing) -> Iterator[Metric]:
    words = "A condition that stands: since when, in Unix time."
    since = GaugeMetricFamily("pulse_condition_since_seconds", words, labels=("condition", "state"))
    conditions = standing.get("conditions")
    for condition in conditions or ():
        since.add_metric((condition["name"], condition["state"]), _seconds(condition["since"]))
    if conditions is not None:
        yield _gauge("pulse_conditions_raised", "How many conditions stand.", len(conditions))
        yield since
    if notices := standing.get("notices"):
        words = "Topics that people were told of and that are not over."
        yield _gauge("pulse_notices_standing", words, notices["standing"])
        yield _gauge("pulse_notices_waiting", "Notices that are not delivered yet.", notices["waiting"])


def _of_vitals(vitals: Mapping[str, Mapping[str, Any]]) -> Iterator[Metric]:
    system = vitals.get("system-resource", {})
    for number in OF_SYSTEM:
        if isinstance(value := system.get(number.field), (int, float)):
            yield _gauge(number.name, number.says, value * number.worth)
    stalls = GaugeMetricFamily(
        "pulse_pressure_ratio",
        "Share of the last ten seconds in which some, or all, work stood still for want of a resource.",
        labels=("resource", "kind"),
    )
    for resource, shares in system.get("psi", {}).items():
        for kind, share in shares.items():
            stalls.add_metric((resource, kind), share)
    yield stalls
    yield from _by_name(OF_DISKS, "path", system.get("disks", {}))
    targets = {**vitals.get("network", {}).get("targets", {}), **vitals.get("llm", {})}
    yield from _by_name(OF_TARGETS, "target", targets)


def _by_name(numbers: Sequence[GaugeField], label: str, of: Mapping[str, Any]) -> Iterator[Metric]:
    """One gauge for each number, with one value for each thing that has it."""
    for number in numbers:
        values = {name: one.get(number.field) for name, one in of.items() if isinstance(one, Mapping)}
        known = {name: value * number.worth for name, value in values.items() if value is not None}
        yield _labelled(number.name, number.says, label, known)


def _gauge(name: str, says: str, value: float) -> Metric:
    return GaugeMetricFamily(name, says, float(value))


def _histogram(
    name: str, says: str, of: Mapping[tuple[str, ...], Mapping[str, Any]], labels: Sequence[str] = ()
) -> Metric:
    """Durations by the values of the labels, as the status tells them."""
    family = HistogramMetricFamily(name, says, labels=labels)
    for values, durations in of.items():
        bounds = [*(str(bound / 1e3) for bound in durations["bounds_ms"]), "+Inf"]
        buckets = list(zip(bounds, accumulate(durations["counts"]), strict=True))
        family.add_metric(values, buckets, durations["sum_ms"] / 1e3)
    return family


def _labelled(name: str, says: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, says, labels=(label,))
    for key, value in values.items():
        family.add_metric((key,), float(value))
    return family


def _seconds(iso: str) -> float:
    return datetime.fromisoformat(iso).timestamp()
