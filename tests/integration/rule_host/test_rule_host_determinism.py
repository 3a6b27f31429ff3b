"""What would make a replay differ, or reads what nothing has sensed, is told with file and line as it happens."""

from pathlib import Path

from pulse_adapters.rule_host.hosts import ChildHosts
from pulse_core.model.vitals import Sample, Window
from tests.integration.rule_host.rule_host_engines import at, folded, host_supervisor, rule, written

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
        fold_result = await folded(host, 2)
        assert {fault.whose for fault in fold_result.faults} == {"advice"}
        words = [fault.message.replace(" makes a replay differ", "") for fault in fold_result.faults]
        assert words == [
            "time.time (rules/own.py:7)",
            "datetime.now (rules/own.py:11)",
            "random.random (rules/own.py:12)",
            "posix.urandom (rules/own.py:13)",
        ]
        assert (await folded(host, 3)).faults == ()


READS = """
async def reads(prev, curr, inner):
    curr.window("nope").last
    curr.window("machine").values("disks./nope.used")
    curr.window("machine").values("disks./.used")
    return await inner(prev, curr)
"""


async def test_in_staging_a_read_of_what_nothing_has_sensed_is_told(tmp_path: Path) -> None:
    sample = Sample(1, "machine", at(1).now, {"disks": {"/": {"used": 0.5}}})
    windows = {"machine": Window((sample,))}
    async with host_supervisor(written(tmp_path, READS), hosts=ChildHosts(dev=True)) as host:
        fold_result = await folded(host, 2, windows=windows)
        assert [fault.message for fault in fold_result.faults] == [
            "no sample of 'nope' is there to read (rules/own.py:4)",
            "no sample of 'machine' has 'disks./nope.used' (rules/own.py:5)",
        ]
        assert (await folded(host, 3, windows=windows)).faults == ()


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
