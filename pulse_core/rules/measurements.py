"""The measurements that samples hold, with their bounds, and how they are told. Pure."""

from collections.abc import Iterator, Mapping
from contextlib import suppress

from pulse_core.model.durations import UNITS, duration_text
from pulse_core.model.json_types import Json
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.names import (
    DEGRADED,
    DNS_ONLY,
    DOWN,
    HTTP_ONLY,
    NETWORK,
    PROCESS_USAGE,
    SLOW,
    SYSTEM_RESOURCE,
    USAGE,
    WELL,
)
from pulse_core.model.text import format_size
from pulse_core.model.vitals import Sample
from pulse_core.projections.conditions import Condition
from pulse_core.projections.gauges import FixedBound, Gauge
from pulse_core.projections.processes import SYSTEMD, ProcessHistory
from pulse_core.projections.state import Snapshot, State
from pulse_core.settings.network import NetworkSettings
from pulse_core.settings.processes import ProcessSettings
from pulse_core.settings.resources import ResourcesSettings
from pulse_core.settings.settings import Settings

UNMEASURED = FixedBound(1.0, 0.5, 60 * US_PER_SECOND)
"""How long a file system may fail to report its usage."""
MOST_NAMED = 5
"""Targets of the network that are named; more are counted."""
CLEAR = 0.9
"""The share of its bound below which usage counts as well again."""


def described(name: str, condition: Condition, curr: Snapshot) -> str:
    """What is wrong by the newest sample, if that is newer than what raised the condition by a second; else by that."""
    sample, words = _newest_sample(name, curr), condition.described(curr.now)
    measured = condition.seen or condition.changed
    if sample and sample.moment.since(measured) >= US_PER_SECOND and (now := described_by_sample(name, curr)):
        measured, words = sample.moment, now
    if not name.startswith(USAGE):
        return words
    history = curr.process(_process_of(name))
    changed = history.up or history.down
    if changed and changed.since(measured) > 0:
        return f"{words}, measured before it {'came up' if history.up else 'went down'}"
    why = _uncounted_reason(name, sample, curr) if sample and measured == sample.moment else ""
    return f"{words}; that counts for nothing: {why}" if why else words


def _uncounted_reason(name: str, sample: Sample, curr: Snapshot) -> str:
    """Why this sample has not ended the condition of what a process takes, in words; empty if it has not to."""
    wanted = _process_of(name)
    process = next((one for one in curr.settings.process if one.name == wanted), None)
    gauge = next((one for one in gauges_of(sample, curr.settings, name) if one.name == name), None)
    return too_early_reason(gauge, process, curr.state, sample.moment) if gauge and process else ""


def described_by_sample(name: str, curr: Snapshot) -> str:
    """What the newest sample says of what this condition is about; empty if it says nothing."""
    if sample := _newest_sample(name, curr):
        with suppress(KeyError, TypeError, AttributeError):  # a sample of another version
            age = curr.now.since(sample.moment)
            seen = f", seen {duration_text(age)} ago" if age >= UNITS["m"] else ""
            if name == NETWORK:
                words = network_words(sample.data["state"], curr.settings.network, sample.data["targets"])
                return f"{words}{seen}"
            gauge = next((one for one in gauges_of(sample, curr.settings, name) if one.name == name), None)
            return "" if gauge is None or gauge.value is None else f"{gauge.words}{seen}"
    return ""


def _newest_sample(name: str, curr: Snapshot) -> Sample | None:
    if name == NETWORK:
        return curr.window(NETWORK).last
    return curr.window(PROCESS_USAGE if name.startswith(USAGE) else SYSTEM_RESOURCE).last


def _process_of(condition: str) -> str:
    """The process that takes too much by this condition; to make each one's name of all processes takes long."""
    return condition.removeprefix(USAGE).rpartition(":")[0]


def gauges_of(sample: Sample, settings: Settings, name: str = "") -> Iterator[Gauge]:
    """Every measurement in a sample of the machine, or of what the guarded processes take; name: of a
    condition, where the process that has it is asked for alone."""
    if sample.key == SYSTEM_RESOURCE:
        yield from resource_gauges(sample.data, settings.resources)
    elif sample.key == PROCESS_USAGE:
        wanted = _process_of(name)
        asked = (one for one in settings.process if not wanted or one.name == wanted)
        for process in asked:
            yield from usage_gauges(process, sample.data.get(process.name, {}))


def network_words(
    state: str, network: NetworkSettings, targets: Mapping[str, Mapping[str, Json]], times: str = ""
) -> str:
    """What a network in this state is like, and the targets in trouble, or else all, as of a slow one, each with its answer.

    times: how often that was seen, in words.
    """
    troubled = {name: one for name, one in targets.items() if not one["ok"]}
    if state == SLOW or not troubled:
        troubled = dict(targets)
    words = [
        f"{name}: answered in {one['latency_ms']:.0f} ms" if one["ok"] else f"{name}: {one['detail']}"
        for name, one in [*troubled.items()][:MOST_NAMED]
    ]
    if (more := len(troubled) - MOST_NAMED) > 0:
        words.append(f"and {more} more")
    head = {
        WELL: "every target answered when it was asked last",
        DOWN: "nothing that is asked answers",
        DNS_ONLY: f"names do not resolve, but {'HTTP works' if network.http else 'DNS answers'}",
        HTTP_ONLY: "names resolve, but HTTP does not work",
        SLOW: f"every {_slow_kind(network, targets)} takes {duration_text(network.slow)} or longer",
        DEGRADED: "the network works, but not every target answers as it should",
    }[state]
    return f"{head}{f', {times}' if times else ''}: {'; '.join(words)}"


def _slow_kind(network: NetworkSettings, targets: Mapping[str, Mapping[str, Json]]) -> str:
    """What takes too long: a name or a page if those of the other kind are answered in time, else any answer."""
    answered = {
        kind: [targets[name]["latency_ms"] * 1000 for name in names if targets.get(name, {}).get("ok")]
        for kind, names in (("name", network.dns), ("page", network.http))
    }
    slow = [kind for kind, took in answered.items() if took and min(took) >= network.slow]
    is_all = len(slow) == sum(bool(took) for took in answered.values())
    return "answer" if is_all or not slow else slow[0]


def resource_gauges(data: Mapping[str, Json], settings: ResourcesSettings) -> Iterator[Gauge]:
    """Every measurement in a sample of `system-resource` that has bounds."""
    left = format_size(data["memory_available"])
    memory = f"memory is used to {data['memory']:.1%}, {left} are available"
    yield Gauge("memory", settings.memory, data["memory"], memory)
    swap = f"swap is used to {data['swap']:.1%} of {format_size(data['swap_total'])}"
    yield Gauge("swap", settings.swap, data["swap"], swap)
    for what, of in (("memory", "memory"), ("io", "the disks")):
        if (share := data["psi"].get(what, {}).get("full")) is not None:
            words = f"everything stood still for want of {of} in {share:.1%} of the last ten seconds"
            yield Gauge(f"pressure:{what}", settings.pressure, share, words)
    for bound in settings.disk:
        path, disk = bound.path, data["disks"].get(bound.path, {})
        if "used" not in disk:
            words = f"how full {path} is cannot be told: {disk.get('error', 'it was not looked at')}"
            yield Gauge(f"disk:{path}", bound, None, words)
            yield Gauge(f"inodes:{path}", bound, None, words)
            yield Gauge(f"unmeasured:{path}", UNMEASURED, 1.0, words)
            continue
        words = f"{path} is full to {disk['used']:.1%}, {format_size(disk['free'])} are free"
        yield Gauge(f"disk:{path}", bound, disk["used"], words)
        if (share := disk.get("inodes")) is not None:
            yield Gauge(f"inodes:{path}", bound, share, f"{share:.1%} of the inodes of {path} are used")
        yield Gauge(f"unmeasured:{path}", UNMEASURED, 0.0, f"{path} tells how full it is")


def unmeasured_reason(name: str, history: ProcessHistory, patience_us: int, now: Moment) -> str:
    """Why this process is not measured any more, in words; empty if it is, or may be again soon after a restart."""
    if history.stop and (by := history.down_for(now)):
        how = history.stop.words_about(name) if by == SYSTEMD else f"{name} was stopped by {by}"
        return f"{how}, and is not measured any more"
    if history.up is None and history.down and (age := now.since(history.down)) > patience_us:
        return f"{name} is down for {duration_text(age)}, and is not measured any more"
    return ""


def usage_gauges(process: ProcessSettings, said: Mapping[str, Json], gone: str = "") -> Iterator[Gauge]:
    """What a sample says of this process, for each bound that it has; said: its entry, empty while it is down.

    gone: why it is not measured any more, if it is not.
    """
    name, (memory, cpu) = process.name, process.usage_conditions
    gone = "" if said else gone
    if bound := process.memory_bound:
        taken = said.get("memory")
        is_between = taken is not None and CLEAR * bound <= taken < bound
        allowed = _allowed(format_size(bound), format_size(CLEAR * bound), is_between)
        words = f"{name} takes {_memory(taken)} of memory ({allowed})"
        yield Gauge(memory, FixedBound(bound, CLEAR * bound, process.for_), taken, words, unwatched=gone)
    if most := process.cpu_max:
        used = said.get("cpu")
        allowed = _allowed(f"{most:g}", f"{CLEAR * most:g}", used is not None and CLEAR * most <= used < most)
        words = f"{name} uses {_cores(used)} ({allowed})"
        yield Gauge(cpu, FixedBound(most, CLEAR * most, process.for_), used, words, unwatched=gone)


def too_early_reason(gauge: Gauge, process: ProcessSettings, state: State, now: Moment) -> str:
    """Why what this process takes does not end its condition yet, in words: it takes little, since it is being ended for a
    restart, or still has time to come up. Empty if it does, or is not to."""
    if gauge.name not in state.conditions.raised or gauge.is_over(gauge.bound.clear):
        return ""
    if process.name in state.processes.restarting.values():
        return "it was being restarted"
    if (up := state.processes[process.name].up) is None:
        return "it was not up"
    lived, needed = now.since(up), min(process.start_grace, process.for_)
    return f"it had been up for {duration_text(lived)}, not {duration_text(needed)}" if lived < needed else ""


def _allowed(most: str, clear: str, is_between: bool) -> str:
    """What is allowed; of a value between both bounds also what ends a condition that has it."""
    return f"allowed: {most}; after it was more: less than {clear}" if is_between else f"allowed: {most}"


def _memory(taken: float | None) -> str:
    return "an unknown amount" if taken is None else format_size(taken)


def _cores(used: float | None) -> str:
    return "an unknown number of cores" if used is None else f"{used:.2f} cores"
