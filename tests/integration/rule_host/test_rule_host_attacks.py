"""Rules that attack cost one deadline at most, are named with their line, and leave nothing behind."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pulse_adapters.rule_host.hosts import ChildHosts
from pulse_adapters.rule_host.replies import LARGEST
from pulse_adapters.sandbox.scratch_folder import Scratch
from pulse_adapters.workers.messages import validator
from pulse_core.ports.engine import CannotLoad, EngineFault
from tests.callback_times import callback_times
from tests.integration.rule_host.rule_host_attacks import AT_IMPORT, ATTACKS, Attack
from tests.integration.rule_host.rule_host_engines import (
    DEADLINE,
    HASTY,
    HERE,
    at,
    folded,
    history_of,
    host_supervisor,
    is_running,
    place_of,
    rule,
    written,
)
from tests.long_form import sampled

GOOD = rule("return (await inner(prev, curr)).plus(Effect(action='note', key='good'))", "good")
SLACK = 5.0
"""Seconds that a busy machine may add to anything."""


@pytest.fixture(autouse=True)
def no_callback_is_long() -> Iterator[None]:
    """Whatever a rule does, the daemon's side is never busy with it for long."""
    for kind in LARGEST:
        validator(kind)  # made once in each process, by nobody's fault
    with callback_times() as times:
        yield
    times.assert_short()


@pytest.mark.wall_clock
@pytest.mark.parametrize("name", sampled(ATTACKS, 10))
async def test_an_attack_costs_one_deadline_and_is_named(name: str, tmp_path: Path) -> None:
    attack = ATTACKS[name]
    async with host_supervisor(written(tmp_path, attack.source + GOOD)) as host:
        pid, began = host.pid, time.monotonic()
        fold_result = await folded(host, 2, settings=attack.settings)
        took = time.monotonic() - began
        assert took <= DEADLINE + SLACK or attack.settings is not HASTY
        judge(attack, fold_result.faults)
        if attack.lives and attack.whose not in ("", "*"):
            assert [effect.key for effect in fold_result.verdict.effects] == ["good"]
        await settled(lambda: host.alive == attack.lives, fold_result)
        if attack.lives:
            await folded(host, 3, settings=attack.settings)
            assert host.alive or not attack.exact
    assert not is_running(pid)


async def settled(condition: object, about: object) -> None:
    """Wait until it is so: an end is seen a moment after it happened."""
    assert callable(condition)
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, about
        await asyncio.sleep(0.005)


async def test_a_rule_that_wishes_many_numbers_is_named_and_its_host_goes_on(tmp_path: Path) -> None:
    many = rule("return Verdict((Effect(action='note', key='k', params={'n': [0] * 20_000}),))")
    async with host_supervisor(written(tmp_path, many)) as host:
        (fault,) = (await folded(host, 2)).faults
        assert fault.whose == "rule:bad"
        assert fault.message.endswith("has more than 10,000 commas as JSON; most of it is this rule's")
        assert host.alive
    talks = """
body = b'{"id": 3, "effects": [' + b"0, " * 60_000 + b"1111111111111111111]}"
os.write(3, len(body).to_bytes(4, "big") + body)
"""
    async with host_supervisor(written(tmp_path / "talks", rule(talks, before="import os"))) as host:
        (fault,) = (await folded(host, 2)).faults
        assert fault == EngineFault(
            "engine", "its host said JSON with 60,001 commas; at most 10,000 are taken"
        )


def judge(attack: Attack, faults: object) -> None:
    """The first fault names who did it, what, and where."""
    assert isinstance(faults, tuple)
    if attack.whose == "*":
        return
    if not attack.whose:
        assert not [fault for fault in faults if fault.whose.startswith("rule:")], faults
        return
    assert faults, "nobody was blamed"
    assert faults[0].whose == attack.whose, faults
    assert attack.says in faults[0].message, faults
    if attack.whose.startswith("rule:"):
        where = place_of(attack.source) if HERE in attack.source and attack.exact else "(rules/own.py:"
        assert where in faults[0].message, faults


@pytest.mark.wall_clock
@pytest.mark.parametrize("name", sampled(AT_IMPORT, 3))
async def test_an_engine_that_attacks_at_import_is_not_loaded(name: str, tmp_path: Path) -> None:
    source, words = AT_IMPORT[name]
    revision = written(tmp_path, source, "from rules.own import x\nRULES = []\n")
    with pytest.raises(CannotLoad) as caught:
        await ChildHosts(load=3.0 if name.startswith("spins") else 30.0).start(
            revision, at(1), history_of(()), {}
        )
    assert words in str(caught.value)


async def test_a_scratch_folder_that_is_filled_costs_the_host(tmp_path: Path) -> None:
    fills = rule(
        """
        for number in range(25):
            open(os.path.join(os.environ["TMPDIR"], f"{curr.tick}-{number}"), "w").close()
        return Verdict()
        """,
        before="import os",
    )
    async with host_supervisor(written(tmp_path, fills)) as host:
        tick = 1
        while host.alive:
            assert tick < 20
            fold_result = await folded(host, tick := tick + 1)
        assert fold_result.faults == (
            EngineFault("engine", "its host said nothing, but filled its scratch folder"),
        )


async def test_nothing_is_left_of_a_host(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    before = set(os.listdir("/proc/self/fd"))
    litter = rule(
        """
        os.chdir(os.environ["TMPDIR"])
        open("c", "w").close()
        for _ in range(40):
            os.mkdir("deep" * 30)
            os.chdir("deep" * 30)
        os.mkdir("closed", 0)
        return Verdict()
        """,
        before="import os",
    )
    async with host_supervisor(
        written(tmp_path / "engine", litter), hosts=ChildHosts(scratch=str(scratch))
    ) as host:
        assert not (await folded(host, 2)).faults
        assert (next(scratch.iterdir()) / "c").exists()
    assert not list(scratch.iterdir())
    assert set(os.listdir("/proc/self/fd")) <= before, "what an earlier test held may be closed meanwhile"


def test_what_a_killed_daemon_left_is_deleted_but_nothing_that_is_held(tmp_path: Path) -> None:
    left, young, foreign = (tmp_path / name for name in ("pulse-rules-left", "pulse-rules-young", "foreign"))
    for folder in (left, young, foreign):
        (folder / "deep").mkdir(parents=True)
    held = Scratch(str(tmp_path))
    long_ago = time.time() - 3600
    for path in (left, foreign, held.path):
        os.utime(path, (long_ago, long_ago))
    Scratch(str(tmp_path)).remove()
    assert {path.name for path in tmp_path.iterdir()} == {
        young.name,
        foreign.name,
        os.path.basename(held.path),
    }
    held.remove()


def test_folders_that_must_not_be_written_do_not_stay() -> None:
    """As a user sees it who is not root."""
    code = """
import os, sys
from pulse_adapters.sandbox.scratch_folder import Scratch
if os.geteuid() == 0:
    os.setresuid(65534, 65534, 65534)
scratch = Scratch(sys.argv[1])
os.makedirs(scratch.path + "/a/b/c")
for path in ("/a/b/c", "/a/b", "/a"):
    os.chmod(scratch.path + path, 0o555)
scratch.remove()
"""
    with TemporaryDirectory() as above:  # which another user may enter, as no folder of a test
        os.chmod(above, 0o777)
        subprocess.run([sys.executable, "-c", code, above], check=True, timeout=60)
        assert os.listdir(above) == []
