"""What would make a replay differ is told with file and line, by reading the code and by watching it run."""

from pathlib import Path

import pytest

from pulse_adapters.rule_host.determinism import strays, strays_in
from pulse_adapters.rule_host.hosts import ChildHosts
from tests.integration.rule_host.rule_host_engines import folded, host_supervisor, rule, written

TOLD = {
    "import time\ntime.time()": "time.time",
    "import time as clock\n\nclock.monotonic_ns()": "time.monotonic_ns",
    "from time import time\ntime()": "time.time",
    "from time import time as now\nx = now": "time.time",
    "from datetime import datetime\ndatetime.now()": "datetime.datetime.now",
    "import datetime\ndatetime.datetime.utcnow()": "datetime.datetime.utcnow",
    "from datetime import date\ndate.today()": "datetime.date.today",
    "import random\nrandom.random()": "random.random",
    "from random import choice\nchoice([1])": "random.choice",
    "import os\nos.urandom(3)": "os.urandom",
    "import os\nos.environ['X']": "os.environ",
    "import os.path\nos.path.exists('/')": "os.path.exists",
    "import uuid\nuuid.uuid4()": "uuid.uuid4",
    "open('/etc/passwd')": "open",
    "from pathlib import Path\nPath('x').read_text()": ".read_text",
    "import socket\nsocket.create_connection(('a', 1))": "socket.create_connection",
    "import subprocess\nsubprocess.run(['a'])": "subprocess.run",
    "import asyncio\nasyncio.sleep(1)": "asyncio.sleep",
    "import urllib.request\nurllib.request.urlopen('a')": "urllib.request.urlopen",
    "import time\ntime.localtime()": "time.localtime",
    "import time\ntime.strftime('%H')": "time.strftime",
    "import secrets\ndef f():\n    return secrets.token_hex()": "secrets.token_hex",
}
HARMLESS = [
    "import time\ntime.localtime(5)",
    "import time\ntime.strftime('%H', x)",
    "from datetime import datetime, timedelta, UTC\ndatetime.fromtimestamp(5, UTC)",
    "import random\nrandom.Random(7)",
    "import os\nos.path.join('a', 'b')",
    "from os.path import join\njoin('a', 'b')",
    "import re\nre.compile('x')",
    "curr.open\ncurr.time",
    "from .time import time\ntime()",
    "def broken(:",
    "",
]


@pytest.mark.parametrize("source", TOLD)
def test_what_looks_beyond_the_snapshot_is_found(source: str) -> None:
    last = len(source.splitlines())
    assert [(one.line, one.what) for one in strays_in(source, "rules/x.py")] == [(last, TOLD[source])]


@pytest.mark.parametrize("source", HARMLESS)
def test_what_does_not_is_passed_over(source: str) -> None:
    assert strays_in(source, "rules/x.py") == []


def test_rules_and_projections_are_read_and_nothing_else(tmp_path: Path) -> None:
    for folder in ("rules/deep", "projections", "watchers", "executors", "tests"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.py").write_text("import time\ntime.time()\n")
    (tmp_path / "engine.py").write_text("import random\nrandom.random()\n")
    assert [str(one) for one in strays(str(tmp_path))] == [
        "random.random makes a replay differ; take it from the snapshot (engine.py:2)",
        "time.time makes a replay differ; take it from the snapshot (rules/deep/a.py:2)",
        "time.time makes a replay differ; take it from the snapshot (projections/a.py:2)",
    ]


RUNS = """
import random, time, uuid
from datetime import datetime

def now():
    return time.time()

async def strays(prev, curr, inner):
    now(); now()
    datetime.now()
    random.random()
    uuid.uuid4()
    return await inner(prev, curr)

async def keeps(prev, curr, inner):
    sorted([3, 1]); repr(curr); random.Random(7)
    return await inner(prev, curr)
"""


async def test_in_staging_calls_are_told_as_they_happen(tmp_path: Path) -> None:
    async with host_supervisor(written(tmp_path, RUNS), hosts=ChildHosts(dev=True)) as host:
        insight = await folded(host, 2)
        assert {fault.whose for fault in insight.faults} == {"determinism"}
        words = [fault.message.replace(" makes a replay differ", "") for fault in insight.faults]
        assert words == [
            "time.time (rules/own.py:7)",
            "datetime.now (rules/own.py:11)",
            "random.random (rules/own.py:12)",
            "posix.urandom (rules/own.py:13)",
        ]
        assert (await folded(host, 3)).faults == ()


async def test_otherwise_nothing_is_watched(tmp_path: Path) -> None:
    async with host_supervisor(written(tmp_path, RUNS)) as host:
        assert (await folded(host, 2)).faults == ()


async def test_the_same_text_has_the_same_hash_in_every_host(tmp_path: Path) -> None:
    notes = []
    for number in range(2):
        async with host_supervisor(
            written(tmp_path / str(number), rule("return Verdict(notes=(str(hash('a')),))"))
        ) as host:
            notes.append((await folded(host, 2)).verdict.notes)
    assert notes[0] == notes[1]
