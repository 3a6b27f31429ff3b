"""Whatever has a name in the code has its place in the pages: conditions, kinds of events, metrics, benchmarks."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from docs.generate import DOCS, pages
from pulse_adapters.metrics.families import OF_DISKS, OF_SYSTEM, OF_TARGETS, MetricsInput, families
from pulse_core.capabilities import CAPABILITIES
from pulse_core.checks.conclusions import PREFIX as CHECK
from pulse_core.composition import KINDS, TOPICS
from pulse_core.llm.endpoint import PREFIX as LLM
from pulse_core.model.names import NETWORK
from pulse_core.watch.evaluate_resources import KINDS as RESOURCES
from pulse_core.watch.log_storm import PREFIX as LOG
from tests.simulation.day import Day, lived
from tests.unit.metrics.metrics_standings import STANDING

CONDITIONS = (*RESOURCES, NETWORK, LLM, CHECK, LOG)
OPERATIONS = (DOCS / "operations.md").read_text()
CAPABILITY_PAGES = {name: DOCS / "capabilities" / f"{name}.md" for name in CAPABILITIES}
RUNBOOK = OPERATIONS + "".join(page.read_text() for page in CAPABILITY_PAGES.values())


@pytest.mark.parametrize("name", CONDITIONS)
def test_every_condition_is_in_the_runbook(name: str) -> None:
    """Of those that have a subject, with it: `disk:PATH`."""
    wanted = rf"`{re.escape(name)}[A-Za-z]+`" if name.endswith(":") else rf"`{re.escape(name)}`"
    assert re.search(wanted, RUNBOOK)


def test_every_alarm_has_its_row_with_what_it_means_what_was_done_and_what_can_be() -> None:
    """An alarm is the topic of a notice, as far as its first colon."""
    rows = re.findall(r"^\| `([a-z-]+)[^`]*` \| (.+) \| (.+) \| \[.+\]\((#.+)\) \|$", RUNBOOK, re.MULTILINE)
    assert {alarm for alarm, *_ in rows} >= TOPICS
    headings = {
        re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", RUNBOOK, re.MULTILINE)
    }
    assert {where.removeprefix("#") for *_, where in rows} <= headings


def test_every_capability_has_its_page_to_which_another_one_leads() -> None:
    others = [page.read_text() for page in pages() if page.parent == DOCS]
    assert set(CAPABILITY_PAGES.values()) == set((DOCS / "capabilities").iterdir())
    for name in CAPABILITIES:
        assert any(f"](capabilities/{name}.md" in text for text in others)


def test_every_kind_of_event_is_in_the_table() -> None:
    page = (DOCS / "architecture.md").read_text()
    rows = set(re.findall(r"^\| \**`([a-z-]+)`\** \|", page, re.MULTILINE))
    ours = {name for name, kind in KINDS.items() if kind.__module__.startswith("pulse_core.")}
    assert ours <= rows


@pytest.fixture(scope="module")
def metrics() -> set[str]:
    """The names of all metrics, as a page of them has them, of a daemon with everything on."""
    names = {number.name for number in (*OF_SYSTEM, *OF_DISKS, *OF_TARGETS)}

    def look(hour: int, day: Day) -> None:
        assert day.world.daemon is not None
        tell(day.world.daemon.report())

    def tell(standing: Mapping[str, Any]) -> None:
        seen = MetricsInput(True, standing, {"events.db": 1})
        names.update(
            f"{one.name}_total" if one.type == "counter" else one.name for one in families(seen, "0")
        )

    lived(1, look)
    tell({"engine": STANDING["engine"]})  # that world has none
    return names


def test_every_metric_is_on_the_page_of_operations(metrics: set[str]) -> None:
    assert not [name for name in sorted(metrics) if f"`{name}`" not in OPERATIONS]


def test_no_metric_is_promised_that_there_is_not(metrics: set[str]) -> None:
    table = OPERATIONS.split("| metric | what it says |")[1].split("\n\n")[0]
    firsts = "".join(row.split("|")[1] for row in table.splitlines() if row.startswith("| `"))
    assert set(re.findall(r"`(pulse_[a-z0-9_]+)`", firsts)) <= metrics
