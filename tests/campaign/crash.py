"""The crash campaign: a real daemon under load is killed again and again, and the files must tell no lie."""

import itertools
import json
import os
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from pulse_adapters.config.home import Home
from pulse_adapters.ipc.client import Client
from pulse_adapters.sqlite.events import new_id
from pulse_adapters.sqlite.verify import verify
from pulse_core.model.errors import PulseError
from tests import forked_daemons
from tests.forked_daemons import ForkedDaemon

KINDS = ("process-died", "process-up", "effect", "effect-executing", "effect-acked")
POINTS = tuple(f"{side}:{what}" for what in (*KINDS, "spawn") for side in ("before", "after"))
SETTLING = ("effect-acked", "effect-failed", "effect-unknown", "effect-cancelled")
BACK_WITHIN = 2.0
CONFIG = """
[[process]]
name = "victim"
start = ["sleep", "86421"]
restart = { max = 1000, within = "10m", backoff = "0s", healthy_after = "0s", grace = "1s" }

[budget]
actions_per_minute = 0

[executors.run-command]
allow = ["/bin/sh"]
"""


@dataclass
class Campaign:
    """A home, and what a client was promised by the daemons that lived on it."""

    home: Home
    dice: Random
    promised: list[str] = field(default_factory=list)
    slowest: float = 0.0
    daemon: ForkedDaemon | None = None

    def prepare(self) -> None:
        self.home.create()
        self.home.config.write_text(CONFIG)

    @property
    def ledger(self) -> Path:
        return self.home.path / "ledger"

    def start(self, point: str = "never", nth: int = 1) -> bool:
        """A daemon fated to die at this point; whether it lived long enough to answer."""
        words, began = (point, str(nth), "--home", str(self.home.path)), time.monotonic()
        with (self.home.path / "daemon.out").open("ab") as log:
            self.daemon = forked_daemons.start(
                words, os.environ, log.fileno(), "tests.campaign.dying_daemon", reads_log=True
            )
        while self.daemon.poll() is None:
            if self.ask("status") is not None:
                self.slowest = max(self.slowest, time.monotonic() - began)
                return True
            time.sleep(0.01)
        return False

    def ask(self, op: str, **fields: Any) -> dict[str, Any] | None:
        with suppress(PulseError), Client(self.home.socket, timeout=5) as client:
            return client.ask(op, **fields)
        return None

    def wish(self) -> None:
        """One effect, repeatable or not; if the answer comes, it is a promise."""
        idempotent = self.dice.random() < 0.5
        kind = "many" if idempotent else "once"
        argv = ["/bin/sh", "-c", f'echo {kind} "$PULSE_EFFECT" >> {self.ledger}']
        data = {
            "action": "run-command",
            "key": f"note:{new_id()}",
            "params": {"argv": argv, "idempotent": idempotent},
        }
        if answer := self.ask("append", drafts=[{"kind": "effect", "data": data, "id": (id_ := new_id())}]):
            assert answer["events"][0]["id"] == id_
            self.promised.append(id_)

    def kill_victim(self) -> None:
        status = self.ask("status")
        pids = [process["pid"] for process in status["processes"]] if status else []
        for pid in pids:
            if pid:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def live_until_dead(self, longest: float) -> None:
        """Load the daemon until its fate, or a random SIGKILL, has reached it."""
        assert self.daemon is not None
        until = time.monotonic() + longest
        while self.daemon.poll() is None:
            if time.monotonic() > until:
                self.daemon.kill()
            self.wish()
            if self.dice.random() < 0.3:
                self.kill_victim()
        self.daemon.wait(timeout=30)

    def settle(self) -> None:
        """A daemon that may live, until nothing is open and the victim is up; then a graceful stop."""
        assert self.start(), "the last daemon did not start"
        until = time.monotonic() + 30
        while time.monotonic() < until:
            status = self.ask("status")
            if status and calm(status):
                break
            time.sleep(0.05)
        else:
            raise AssertionError(f"still not calm: {status}")
        assert self.daemon is not None
        self.daemon.terminate()
        assert self.daemon.wait(20) == 0

    def close(self) -> None:
        """End what is left running."""
        if self.daemon and self.daemon.poll() is None:
            self.daemon.kill()
            self.daemon.wait(timeout=30)
        mine = f"UPULSE_CAMPAIGN={self.home.path}".encode()
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if b"86421" in (entry / "cmdline").read_bytes() and mine in (entry / "environ").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)

    def check(self) -> None:
        """The invariants, from the files alone."""
        found = verify(self.home.events, self.home.objects)
        assert not found.fault, found.fault
        with sqlite3.connect(f"file:{self.home.events}?mode=ro", uri=True) as log:
            rows = log.execute("SELECT id, kind, subject FROM event ORDER BY seq").fetchall()
        log.close()
        ids = {id_ for id_, _, _ in rows}
        assert set(self.promised) <= ids, "an acknowledged event is gone"
        wishes = {id_ for id_, kind, _ in rows if kind == "effect"}
        settled = Counter(subject for _, kind, subject in rows if kind in SETTLING)
        assert set(settled) == wishes, f"left unsettled: {sorted(wishes - set(settled))}"
        assert set(settled.values()) <= {1}, "an effect was settled twice"
        notes = (
            [line.split() for line in self.ledger.read_text().splitlines()] if self.ledger.exists() else []
        )
        once = Counter(id_ for kind, id_ in notes if kind == "once")
        assert max(once.values(), default=0) <= 1, "an at-most-once action ran twice"
        assert {id_ for _, id_ in notes} <= wishes, "something ran that nobody wished"
        acked = {subject for _, kind, subject in rows if kind == "effect-acked"}
        many = {id_ for kind, id_ in notes if kind == "many"}
        shell = {id_ for id_ in acked if id_ in set(self.promised)}
        assert shell <= {*once, *many}, "an acked command left no trace"


def calm(status: dict[str, Any]) -> bool:
    """Whether nothing is open and everything is up."""
    effects, processes = status["effects"], status["processes"]
    return not effects["pending"] + effects["executing"] and all(one["state"] == "up" for one in processes)


def run(
    path: Path, kills: int, seed: int, random_each: int = 2, points: Sequence[str] = POINTS
) -> dict[str, Any]:
    """So many kills, at each of these points in turn, and each so many-th at a random moment; what was seen."""
    os.environ["UPULSE_CAMPAIGN"] = str(path)
    campaign = Campaign(Home(path), Random(seed))
    campaign.prepare()
    turns = itertools.cycle(points)
    try:
        for number in range(1, kills + 1):
            is_random = number % random_each == 0
            fate = () if is_random else (next(turns), campaign.dice.randint(1, 3))
            alive = campaign.start(*fate)
            if alive:
                campaign.live_until_dead(campaign.dice.uniform(0.05, 1.0) if is_random else 10.0)
        campaign.settle()
        campaign.check()
    finally:
        campaign.close()
        del os.environ["UPULSE_CAMPAIGN"]
    return {"kills": kills, "promised": len(campaign.promised), "slowest_start_s": round(campaign.slowest, 3)}


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
