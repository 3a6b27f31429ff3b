"""What Pulse costs, part by part: each watcher, each process that helps the daemon, each rule."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from pulse_core.app.context import HomeContext
from pulse_core.model.errors import NotAnswering
from pulse_core.model.json_answers import CostJson, HelperCostJson, ProfileJson, RuleCostJson
from pulse_core.model.moment import iso
from pulse_core.model.tick import LayerOutcome

N = TypeVar("N", int, float)


def profile(home: HomeContext, since: int, helpers: Callable[[int], Iterable[HelperCostJson]]) -> ProfileJson:
    """Costs as JSON values; `watchers` and `helpers` are None while no daemon answers, or one that does not tell.

    since: UTC microseconds. It bounds the recorded ticks; watchers are told over their newest looks. helpers: what each
    child process of the daemon with this process id costs.
    """
    watchers, pid = None, None
    try:
        status = home.daemon.status()
        watchers, pid = status.get("watchers"), status["daemon"]["pid"]
    except NotAnswering:
        pass
    with home.vitals() as vitals:
        ticks = list(vitals.layers_since(since))
    return {
        "since": iso(since),
        "watchers": watchers,
        "helpers": list(helpers(pid)) if watchers is not None and pid else None,
        "ticks": spent([took for took, _ in ticks]),
        "rules": rules([layer for _, layers in ticks for layer in layers]),
    }


def rules(layers: Sequence[LayerOutcome]) -> list[RuleCostJson]:
    """What each rule costs, the dearest first."""
    took: dict[str, list[int]] = {}
    errors: dict[str, int] = {}
    for one in layers:
        took.setdefault(one.rule, []).append(one.took_us)
        errors[one.rule] = errors.get(one.rule, 0) + (one.outcome == "error")
    whole = sum(map(sum, took.values()))
    told: list[RuleCostJson] = [
        {"rule": rule, **spent(each), "errors": errors[rule], "share": sum(each) / whole if whole else 0.0}
        for rule, each in took.items()
    ]
    return sorted(told, key=lambda one: -one["share"])


def spent(took: Sequence[int]) -> CostJson:
    """How often something was done, and what that took: microseconds, None if it never was."""
    ordered = sorted(took)
    return {
        "calls": len(ordered),
        "p50_us": percentile(ordered, 50),
        "p99_us": percentile(ordered, 99),
        "total_us": sum(ordered),
    }


def percentile(ordered: Sequence[N], percent: int) -> N | None:
    """The value that so many percent of these do not exceed; None if there is none."""
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else None
