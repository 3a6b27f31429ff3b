"""Units followed through a real journald: heard soon, once, behind their cursor, and what it suppresses is counted."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.systemd.systemd_machine import CHECKOUT, Machine, eventually

TALKER = """\
import time
number = 0
while True:
    with open("/srv/orders") as orders:
        for order in orders:
            for _ in range(int(order)):
                print("ERROR", number, time.time_ns(), flush=True)
                number += 1
"""
EAR = """\
import asyncio, json, os, time
from pulse_adapters.logs.reader import FollowedLogs
from pulse_core.ports.logs import LogBatch
from pulse_core.settings.logs import LogSettings

log = open("/srv/heard", "a+")
log.seek(0)
places = {}
for line in log:
    places |= json.loads(line).get("places", {})

def write(**row):
    log.write(json.dumps(row) + "\\n")
    log.flush()

def take():
    now = time.time_ns()
    for message in reader.take():
        if isinstance(message, LogBatch):
            lines = [line for hits in message.hits for line in hits.lines]
            write(lines=lines, count=sum(hits.number for hits in message.hits), at=now,
                  places={message.source: message.place})
            reader.recorded([message.source])
        else:
            write(places=message.places, dropped=message.dropped)

async def main():
    reader.follow([LogSettings(unit="talker.service", keywords=("ERROR",), lines_per_minute=1000)], places, set())
    reader.listen(take)
    await asyncio.sleep(1000)

reader = FollowedLogs(lambda whose, words: write(error=[whose, words]))
asyncio.run(main())
"""


@dataclass
class Ward:
    """A machine with a unit that talks when it is told to, and a reader that writes down what it hears."""

    machine: Machine

    def rows(self) -> list[dict[str, Any]]:
        path = self.machine.path("/srv/heard")
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def heard(self) -> list[tuple[int, float]]:
        """The number of each line that was heard, and the milliseconds that it took."""
        words = [(line.split(), row["at"]) for row in self.rows() for line in row.get("lines", ())]
        return [(int(said[1]), (at - int(said[2])) / 1e6) for said, at in words]

    def say(self, number: int) -> None:
        with self.machine.path("/srv/orders").open("w") as orders:
            orders.write(f"{number}\n")

    def wait_for(self, number: int) -> list[int]:
        """The numbers of the lines that were heard, when there are as many."""
        eventually(lambda: len(self.heard()) >= number, f"{number} lines", self.machine.words)
        return [one for one, _ in self.heard()]


@pytest.fixture
def ward(machine: Machine) -> Iterator[Ward]:
    machine.write("/srv/talker.py", TALKER)
    machine.write("/srv/ear.py", EAR)
    machine.run(["mkfifo", "/srv/orders"])
    python = sys.executable
    machine.write("/etc/systemd/system/talker.service", f'[Service]\nExecStart="{python}" /srv/talker.py\n')
    listening = f'[Service]\nExecStart="{python}" /srv/ear.py\nEnvironment="PYTHONPATH={CHECKOUT}"\n'
    machine.write("/etc/systemd/system/ear.service", listening)
    machine.systemctl("daemon-reload")
    machine.systemctl("start", "talker.service", "ear.service")
    made = Ward(machine)
    eventually(lambda: any("places" in row for row in made.rows()), "the reader", machine.words)
    yield made
    machine.systemctl("kill", "--signal=KILL", "talker.service", "ear.service", check=False)
    machine.systemctl("stop", "talker.service", "ear.service", check=False)
    machine.run(
        ["sh", "-c", "rm -rf /srv/* /etc/systemd/system/talker.service /etc/systemd/system/ear.service"]
    )
    machine.systemctl("daemon-reload")


def kill(machine: Machine, program: str) -> None:
    """Kill all processes of the machine that run this."""
    machine.run(["pkill", "-KILL", "-f", program], check=False)


@pytest.mark.wall_clock
def test_lines_are_heard_within_half_a_second(ward: Ward) -> None:
    for number in range(1, 21):
        ward.say(1)
        ward.wait_for(number)
    assert [one for one, _ in ward.heard()] == list(range(20))
    # journald tells of changes four times a second; each line here comes right after that, which is the worst case.
    assert sorted(took for _, took in ward.heard())[10] < 500


def test_each_line_comes_once_whoever_is_killed(ward: Ward) -> None:
    ward.say(10)
    assert ward.wait_for(10) == list(range(10))
    kill(ward.machine, "journalctl --follow")
    ward.say(10)
    assert ward.wait_for(20) == list(range(20))
    assert "journalctl ended (signal 9) and is begun again" in json.dumps(ward.rows())
    kill(ward.machine, "pulse_adapters.logs.tail")
    ward.say(10)
    assert ward.wait_for(30) == list(range(30))
    ward.machine.systemctl("kill", "--signal=KILL", "ear.service")
    ward.say(10)
    ward.machine.systemctl("restart", "ear.service")  # it may not know yet that it is dead
    assert ward.wait_for(40) == list(range(40))


def test_no_reader_is_left_when_its_daemon_is_killed(ward: Ward) -> None:
    running = ["pgrep", "-f", "journalctl --follow|pulse_adapters.logs.tail"]
    assert len(ward.machine.run(running).stdout.split()) == 2
    ward.machine.run(["pkill", "-KILL", "-f", "/srv/ear.py"])
    eventually(
        lambda: not ward.machine.run(running, check=False).stdout, "the readers to end", ward.machine.words
    )


def test_what_journald_suppresses_in_a_storm_is_counted(ward: Ward) -> None:
    Path(ward.machine.path("/run/systemd/journald.conf.d")).mkdir(parents=True, exist_ok=True)
    ward.machine.write(
        "/run/systemd/journald.conf.d/storm.conf", "[Journal]\nRateLimitIntervalSec=2s\nRateLimitBurst=500\n"
    )
    ward.machine.systemctl("restart", "systemd-journald.service")
    ward.machine.systemctl("restart", "talker.service")
    ward.say(20_000)

    def told() -> bool:
        ward.say(1)  # journald says what it suppressed with the next message that it takes
        dropped = max(
            (row["dropped"].get("talker.service", 0) for row in ward.rows() if "dropped" in row), default=0
        )
        counted = sum(row.get("count", 0) for row in ward.rows())
        return bool(dropped) and dropped + counted >= 20_000

    eventually(told, "every line to be counted", ward.machine.words)
    assert "journald suppressed messages of it" in json.dumps(ward.rows())
    ward.machine.run(["rm", "/run/systemd/journald.conf.d/storm.conf"])
    ward.machine.systemctl("restart", "systemd-journald.service")
