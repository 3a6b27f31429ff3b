"""The engine as a whole: how long a promote, a rollback and a replay of a day take, and what it all costs idle."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

from pulse_adapters.config.home import Home
from pulse_adapters.git.create_repository import template_folder
from pulse_adapters.git.repository import Repository
from pulse_adapters.ipc.client import Client
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_core.app.engine.promote import Plan, promote, rollback
from pulse_core.app.engine.replay import replay_ticks
from pulse_core.model.event import Head
from pulse_core.model.moment import Moment
from pulse_core.model.tick import LayerOutcome, TickRecord
from pulse_core.ports.engine import Revision
from pulse_core.ports.readers import EventQuery
from tests import processes
from tests.benchmarks.bench_idle import GUARDED, SETTLE, config, cost, memory
from tests.benchmarks.harness import children_of, compiled, daemon, directory, made_home
from tests.benchmarks.table import Row
from upulse_cli.wiring.engine import workflow_context
from upulse_cli.wiring.home import home_context

ADA = "Ada Lovelace <ada@example.org>"
RULES = 20
DAY_S, STEP_S = 86_400, 5
IDLE_S = 60.0
RULE = '''"""A rule as many are: looks at a window, and passes on."""

from pulse_core import Effect, Inner, Snapshot, Verdict
from tests import processes


async def {name}(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Wish for a note when the load is high."""
    verdict = await inner(prev, curr)
    loads = curr.window("system-resource").values("load1")
    if not loads or max(loads) < {bound}:
        return verdict
    return verdict.plus(Effect(action="notify", key="notify:{name}", params={{"title": "{name}", "text": "high"}}))
'''


def write_rules(root: Path, bound: float) -> None:
    """Twenty rules, all listed."""
    names = [f"rule_{number}" for number in range(RULES)]
    for name in names:
        (root / "rules" / f"{name}.py").write_text(RULE.format(name=name, bound=bound))
    imports = "".join(f"from rules.{name} import {name}\n" for name in names)
    (root / "engine.py").write_text(
        f'"""Twenty rules."""\n\nfrom pulse_core import Rule\n\n{imports}\nRULES: list[Rule] = [{", ".join(names)}]\n'
    )
    for test in (root / "tests").glob("test_*.py"):
        test.unlink()
    (root / "tests" / "test_one.py").write_text("def test_nothing() -> None:\n    assert True\n")


def with_engine(place: Path, settings: str) -> Home:
    """A home with an engine of twenty rules in staging."""
    home = made_home(place / "home", settings)
    repository, _ = Repository.create(home.path, template_folder(), ADA)
    write_rules(repository.staging().path, 1_000.0)
    return home


async def a_day(home: Home) -> int:
    """Record a day of ticks, one every five seconds, each with a sample; how many."""
    began = time.time_ns() // 1000 - DAY_S * 1_000_000
    layers = (LayerOutcome("process_watchdog", "passed"),)
    async with SqliteVitals.open(home.vitals) as vitals:
        for number in range(DAY_S // STEP_S):
            at = began + number * STEP_S * 1_000_000
            moment = Moment(at, "boot", at - began + 1)
            load = {"load1": (number % 100) / 100, "memory": 0.5, "cpu": 0.1, "disks": {"/": {"used": 0.5}}}
            sample = vitals.sample("system-resource", moment, load)
            vitals.record(
                TickRecord(number + 1, moment, "timer", Head(), (sample.id,), "", "0", layers, (), 5_000, 100)
            )
            if number % 500 == 0:
                await vitals.flush()
    return DAY_S // STEP_S


def replay_of_a_day(place: Path) -> Row:
    """Fold a day through twenty rules."""
    home = with_engine(place, "")
    with daemon(home):
        pass
    home.vitals.unlink()
    ticks = asyncio.run(a_day(home))
    root = Repository(home.path).staging().path
    began = time.perf_counter()
    (replay,), _ = asyncio.run(
        replay_ticks(workflow_context(home_context(home)), 0, (Revision("staging", str(root)),))
    )
    took = time.perf_counter() - began
    assert replay.ticks == ticks, replay.ticks
    return Row(
        f"replay of 24 h of 5-second ticks ({ticks:,}) through {RULES} rules", "<= 3 s", f"{took:.2f} s"
    )


def status(home: Home) -> Any:
    with Client(home.socket, timeout=10) as client:
        return client.ask("status")


def await_engine(home: Home) -> None:
    until = time.monotonic() + 20
    while not (status(home)["engine"] or {}).get("runs"):
        if time.monotonic() > until:
            raise RuntimeError("no host is up")
        time.sleep(0.02)


def turns(home: Home) -> list[Row]:
    """A promote with all its gates, and a rollback."""
    rows = []
    await_engine(home)
    time.sleep(10)
    began = time.perf_counter()
    done = promote(workflow_context(home_context(home)), Plan("twenty rules", ADA))
    took = time.perf_counter() - began
    gates = ", ".join(f"{gate.name} {gate.took:.2f}" for gate in done.gates)
    rows.append(Row(f"promote with gates, {RULES} rules", "<= 10 s", f"{took:.2f} s", gates))
    with SqliteEventReader(home.path) as log:
        told = {row.kind: row for row in log.events(EventQuery(kinds=("promote-requested", "promote")))}
    live = (told["promote"].at - told["promote-requested"].at) / 1000
    rows.append(Row("- asked for -> new rules live", "<= 500 ms", f"{live:.0f} ms"))
    began = time.perf_counter()
    rollback(workflow_context(home_context(home)), "", "measured")
    rows.append(Row("rollback", "<= 1 s", f"{time.perf_counter() - began:.2f} s"))
    return rows


def idle(home: Home, pid: int) -> Row:
    """What the daemon and its host cost while nothing happens."""
    pids = [pid, *processes.children(pid, "rule_host")]
    time.sleep(SETTLE)
    before = [cost(one) for one in pids]
    time.sleep(IDLE_S)
    share = sum(cost(one).share_since(then) for one, then in zip(pids, before, strict=True))
    sizes = [memory(one)["Rss"] for one in pids]
    words = f"{share:.3%}, RSS {sum(sizes):.1f} MiB"
    raw = " + ".join(f"{size:.1f}" for size in sizes)
    return Row(
        f"idle with an engine, {GUARDED} guarded processes", "<= 0.3 % of a core, <= 95 MiB", words, raw
    )


def run() -> list[Row]:
    """All of it."""
    compiled()
    with directory() as place:
        rows = [replay_of_a_day(place / "replay")] if (place / "replay").mkdir() is None else []
        (place / "live").mkdir()
        home = with_engine(place / "live", config())
        with children_of(home), daemon(home) as (pid, _):
            rows += turns(home)
            rows.append(idle(home, pid))
    return rows


if __name__ == "__main__":
    from tests.benchmarks.table import markdown

    print(markdown(run()))
    print(json.dumps({}))
