"""Users' rules in a real daemon: promoted, taken back, hostile, and never in survival's way."""

import itertools
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.git.create_repository import template_folder
from pulse_adapters.git.revisions import ensure_revision
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_core.app.engine.promote import Plan, promote, rollback
from pulse_core.model.errors import PulseError
from pulse_core.ports.readers import EventQuery
from tests import processes
from tests.acceptance.conftest import Served
from tests.integration.cli.cli_home import CliHome
from tests.integration.rule_host.rule_host_attacks import ATTACKS
from tests.integration.rule_host.rule_host_engines import HEAD, rule
from tests.long_form import in_campaign
from tests.repositories import repository_of
from upulse_cli.wiring.engine import workflow_context
from upulse_cli.wiring.home import home_context

ADA = "Ada Lovelace <ada@example.org>"
CONFIG = """
[daemon]
tick_ms = 200
[rollback]
errors = 3
breakdowns = 3
[engine]
repeat = "0s"
[[process]]
name = "victim"
start = ["sleep", "9017"]
restart = { max = 1000, within = "10m", backoff = "0s", healthy_after = "0s", grace = "0s" }
[budget]
actions_per_minute = 0
"""
GOOD = rule("return await inner(prev, curr)", "good")


class Engine:
    """A home with a daemon and an engine of one file of rules. since: only events after that row are told of."""

    def __init__(self, served: Served) -> None:
        self.served, self.home, self.since = served, served.home, 0
        served.configure(CONFIG)
        self.template = served.home.path / "template"
        shutil.copytree(
            template_folder(), self.template, ignore=shutil.ignore_patterns("tests", "__pycache__")
        )
        self.write(self.template, GOOD, "good")
        self.repository = repository_of(self.home.path, self.template, ADA)

    @staticmethod
    def write(root: Path, source: str, name: str) -> None:
        (root / "rules" / "own.py").write_text(HEAD + source)
        (root / "engine.py").write_text(f"from rules.own import {name}\nRULES = [{name}]\n")

    def candidate(self, source: str, name: str = "bad") -> str:
        """A commit with this one rule, laid out."""
        self.write(self.repository.staging().path, source, name)
        self.repository.commit_staging("another rule", ADA)
        commit = self.repository.candidate("another rule", ADA)
        ensure_revision(self.home.path, commit)
        return commit

    def promote(self, source: str, name: str = "bad") -> dict[str, Any]:
        """Bring a rule into force; the daemon's answer."""
        commit = self.candidate(source, name)
        asked = self.served.append("promote-requested", commit, previous=self.in_force())
        return self.event(lambda event: event["cause"] == asked["id"], "an answer")

    def in_force(self) -> str:
        return str(self.served.status()["engine"]["commit"] or "")

    def begin(self) -> None:
        self.served.start()
        self.served.eventually(lambda: self.served.status()["engine"]["runs"], "a host is up")
        self.served.eventually(self.in_force, "the first commit is in force")

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        with SqliteEventReader(self.home.path) as log:
            return [dict(row.spelled()) for row in log.events(EventQuery(since_seq=self.since, kinds=kinds))]

    def host(self) -> int:
        """The pid of the rule host, once there is no other."""
        assert self.served.daemon is not None
        children = partial(processes.children, self.served.daemon.pid, "rule_host")

        def only() -> int | None:
            found = children()
            return found[0] if len(found) == 1 else None

        return int(self.served.eventually(only, "there is one host"))

    def errors_of(self, subject: str, after: int) -> bool:
        """Whether one is told of it among the errors after so many."""
        return any(event["subject"] == subject for event in self.events("error")[after:])

    def event(self, wanted: Callable[[dict[str, Any]], bool], what: str, *kinds: str) -> dict[str, Any]:
        found: list[dict[str, Any]] = []

        def looked() -> bool:
            found[:] = [event for event in self.events(*kinds) if wanted(event)]
            return bool(found)

        self.served.eventually(looked, what)
        return found[-1]

    def recover(self) -> None:
        """See that a killed process is back; how soon, `test_hostile_suite` judges beside a daemon that nobody attacks."""
        pid = self.served.pid_when_up("victim")
        os.kill(pid, signal.SIGKILL)
        self.served.pid_when_up("victim", other_than=pid)


@pytest.fixture
def engine(served: Served) -> Engine:
    return Engine(served)


@pytest.fixture(scope="module")
def engine_for_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One daemon for all that leave the first rules in force."""
    served = Served(tmp_path_factory.mktemp("shared") / "home")
    try:
        engine = Engine(served)
        engine.begin()
        yield engine
    finally:
        served.close()


@pytest.fixture
def running(engine_for_all: Engine) -> Engine:
    """An engine whose daemon runs, of which nothing earlier is told."""
    repository, in_force = engine_for_all.repository, engine_for_all.in_force
    engine_for_all.served.eventually(
        lambda: repository.head() == in_force() == repository.staging().commit, "main and staging follow"
    )
    engine_for_all.since = int(engine_for_all.events()[-1]["seq"])
    return engine_for_all


def test_a_promote_whose_rules_raise_is_taken_back_by_itself_and_kept_with_its_evidence(
    running: Engine,
) -> None:
    engine = running
    first = engine.in_force()
    answer = engine.promote(rule("raise RuntimeError('always')"))
    assert answer["kind"] == "promote"
    rolled = engine.event(lambda event: True, "it is taken back", "rollback")
    assert (rolled["data"]["to"], rolled["data"]["rejected"]) == (first, answer["subject"])
    assert "errors while it was watched" in rolled["data"]["why"]
    assert engine.repository.resolve(rolled["data"]["kept_as"]) == answer["subject"]
    engine.served.eventually(lambda: engine.repository.head() == rolled["subject"], "main follows")
    error = engine.event(lambda event: event["subject"] == "rule:bad", "the error", "error")
    assert error["data"]["message"] == "RuntimeError: always (rules/own.py:5)"
    # A host that is late on a busy machine is replaced: for a moment none runs.
    engine.served.eventually(lambda: engine.served.status()["engine"]["runs"] == rolled["subject"], "it runs")
    assert engine.served.status()["engine"]["rules"] == ["good"]


@in_campaign  # `test_promote_kills` has the same
def test_killed_between_the_wish_and_the_answer_the_next_daemon_answers_it(engine: Engine) -> None:
    """It is carried out if the daemon had not begun it, and else refused: it may be what killed the daemon."""
    engine.begin()
    first, commit = engine.in_force(), engine.candidate(GOOD.replace("good", "better"), "better")
    asked = engine.served.append("promote-requested", commit, previous=engine.in_force())
    engine.served.kill()
    engine.served.start()
    answer = engine.event(lambda event: event["cause"] == asked["id"], "an answer")
    begun = engine.events("engine-change-started")
    assert [event["subject"] for event in begun] == [asked["id"]]
    second_start = engine.events("daemon-started")[1]
    is_done = begun[0]["seq"] > second_start["seq"] or answer["seq"] < second_start["seq"]
    assert answer["kind"] == ("promote" if is_done else "promote-refused")
    now, rule_now = (commit, "better") if is_done else (first, "good")
    engine.served.eventually(lambda: engine.repository.head() == now, "main follows")
    engine.served.eventually(lambda: engine.served.status()["engine"]["rules"] == [rule_now], "it runs")
    assert len([event for event in engine.events() if event["cause"] == asked["id"]]) == 1


def test_a_changed_commit_is_made_anew_and_one_that_cannot_be_loaded_any_more_is_taken_back(
    engine: Engine,
) -> None:
    """Both before it is run, and both are said loudly."""
    engine.begin()
    first = engine.in_force()
    flag = engine.home.path / "template" / "broken"
    spoilt = f"import os\nif os.path.exists({str(flag)!r}):\n    raise RuntimeError('not today')\n"
    commit = engine.promote(GOOD.replace("good", "better") + spoilt, "better")["subject"]
    engine.served.stop()
    rules = engine.home.path / "revisions" / commit / "rules"
    committed = (rules / "own.py").read_text()
    for path in (rules, rules / "own.py"):
        path.chmod(0o700)
    (rules / "own.py").write_text(HEAD + GOOD.replace("good", "worse"))
    (rules / "more.py").write_text("")
    engine.served.start()
    engine.served.eventually(lambda: engine.served.status()["engine"]["runs"] == commit, "it runs")
    error = engine.event(lambda event: event["subject"] == "engine", "it is said", "error")
    assert "had been changed after they were laid out" in error["data"]["message"]
    assert (rules / "own.py").read_text() == committed
    assert not (rules / "more.py").exists()
    assert engine.served.status()["engine"]["rules"] == ["better"]
    kept = engine.home.path / "revisions" / f".altered-{commit}"
    assert str(kept) in error["data"]["message"]
    assert (kept / "rules" / "more.py").exists()
    assert "somebody changed the files" in CliHome(engine.home.path).upulse("doctor").out
    engine.served.stop()
    flag.touch()
    engine.since = engine.events()[-1]["seq"]
    engine.served.start()
    rolled = engine.event(lambda event: True, "it is taken back", "rollback")
    assert rolled["data"]["to"] == first
    assert "can't be loaded" in rolled["data"]["why"]
    error = engine.event(lambda event: event["subject"] == "engine", "it is said", "error")
    assert "rules/own.py" in error["data"]["message"]
    engine.served.eventually(
        lambda: engine.served.status()["engine"]["runs"] == rolled["subject"], "the first one's files run"
    )
    engine.recover()


def test_a_host_that_is_killed_is_back_and_survival_does_not_notice(running: Engine) -> None:
    child = running.host()
    os.kill(child, signal.SIGKILL)
    running.recover()
    running.served.eventually(lambda: running.host() != child, "another host")


GROUPS = 12
SHORT = (7,) if "PULSE_CAMPAIGN" not in os.environ else range(GROUPS)
"""Every attack on a rule host, here on a whole daemon: a twelfth of them in `check`, all of them in `campaign`. How soon
what is killed is back meanwhile is judged in `test_hostile_suite`."""


@pytest.fixture
def attacked(engine: Engine) -> Engine:
    engine.served.configure(CONFIG.replace("errors = 3\nbreakdowns = 3", "errors = 100\nbreakdowns = 100"))
    engine.begin()
    return engine


@pytest.mark.timeout(600)
@pytest.mark.parametrize("group", SHORT)
def test_whatever_rules_do_a_killed_process_is_back_and_the_log_says_who_did_it(
    attacked: Engine, group: int
) -> None:
    for name in itertools.islice(ATTACKS, group, None, GROUPS):
        attack, seen = ATTACKS[name], len(attacked.events("error"))
        answer = attacked.promote(attack.source)
        assert answer["kind"] == "promote", f"{name}: {answer}"
        attacked.recover()
        if attack.whose in ("", "*"):
            continue
        attacked.served.eventually(
            partial(attacked.errors_of, attack.whose, seen),
            f"who it was: {name}",
        )
    assert attacked.served.status()["daemon"]["state"] == "running"


BULLY = """
stop = Effect(action="stop-process", key=f"s:{curr.now.at}", params={"process": "victim"})
restart = Effect(action="restart-process", key=f"r:{curr.now.at}", params={"process": "victim"})
back = Effect(action="rollback-engine", key=f"b:{curr.now.at}", params={"to": "x", "reject": curr.engine.commit})
return (await inner(prev, curr)).plus(stop, restart, back)
"""


def test_no_rule_keeps_down_what_is_guarded_and_no_host_outlives_its_daemon(engine: Engine) -> None:
    engine.served.configure(CONFIG.replace('healthy_after = "0s"', 'healthy_after = "1h"'))
    engine.begin()
    pid = engine.served.pid_when_up("victim")
    engine.promote(rule(BULLY, "bully", "from pulse_core import Effect"), "bully")
    engine.event(lambda event: True, "it is taken back", "rollback")
    assert {event["subject"] for event in engine.events("error")} == {"rule:bully"}
    assert engine.served.pid_when_up("victim") == pid
    assert not [event for event in engine.events("effect") if event["subject"][:2] in ("s:", "r:", "b:")]
    no_host_outlives_its_daemon(engine)


def no_host_outlives_its_daemon(engine: Engine) -> None:
    engine.promote(rule("sum(range(10**13))"))
    child = engine.host()
    engine.served.kill()
    engine.served.daemon = None
    engine.served.eventually(lambda: not Path(f"/proc/{child}").exists(), "the host has ended")


def test_a_promote_and_a_rollback_through_the_front_door(running: Engine) -> None:
    engine = running
    first = engine.in_force()
    staging = engine.repository.staging().path
    engine.write(staging, GOOD.replace("good", "better"), "better")
    (staging / "rules" / "broken.py").write_text("def x(:\n")
    with pytest.raises(PulseError, match="says no"):
        promote(workflow_context(home_context(engine.home)), Plan("broken", ADA))
    assert engine.in_force() == first
    (staging / "rules" / "broken.py").unlink()
    done = promote(
        workflow_context(home_context(engine.home)),
        Plan("better", ADA, skip={"types": "it is checked elsewhere"}),
    )
    assert [gate.name for gate in done.gates] == ["compiles", "types", "loads", "tests", "replay"]
    assert engine.in_force() == done.commit
    recorded = engine.events("promote")[-1]["data"]
    assert "types skipped: it is checked elsewhere" in recorded["gates"]
    answer = rollback(workflow_context(home_context(engine.home)), "", "try it")
    assert answer is not None
    assert answer["data"]["to"] == first
    assert json.dumps(answer)


HANDS_RULE = """
from pulse_core import Effect

async def beeps(prev, curr, inner):
    verdict = await inner(prev, curr)
    jobs = curr.window("queue").values("jobs")
    if not jobs or not jobs[-1]:
        return verdict
    return verdict.plus(Effect(action="beep", key="beep", params={"times": jobs[-1]}))
"""
WATCHER = '''
import asyncio
from pathlib import Path

from pulse_core import Reading


class Queue:
    """How many jobs wait."""

    name = key = "queue"
    interval, timeout = 1.0, 5.0

    def __init__(self):
        self.nudge = asyncio.Event()

    async def collect(self):
        return Reading({"jobs": len(list(Path("{spool}").glob("*.job")))})

    def should_wake(self, window):
        return bool(window.last and window.last.data["jobs"])
'''
EXECUTOR = '''
from pathlib import Path

from pydantic import BaseModel

from pulse_core import Policy, Result, Safety


class BeepParams(BaseModel):
    times: int = 1


class Beep:
    """Carries out `beep`."""

    action, params = "beep", BeepParams

    def policy(self, params):
        return Policy(Safety.IDEMPOTENT, timeout=5.0)

    def check(self, params):
        pass

    async def execute(self, effect, params, event):
        Path("{spool}/beeped").write_text(str(params.times))
        return Result({"times": params.times})

    async def verify(self, effect, params, event):
        return None
'''


def promoted_hands(
    engine: Engine, spool: Path, watcher: str, executor: str, before: str = ""
) -> dict[str, Any]:
    """The daemon's answer to a promote of a watcher, an executor, and a rule that joins them."""
    spool.mkdir()
    staging = engine.repository.staging().path
    (staging / "watchers" / "queue.py").write_text(watcher.replace("{spool}", str(spool)))
    (staging / "executors" / "beep.py").write_text(executor.replace("{spool}", str(spool)))
    (staging / "rules" / "own.py").write_text(before + HANDS_RULE)
    (staging / "engine.py").write_text(
        "from executors.beep import Beep\nfrom rules.own import beeps\nfrom watchers.queue import Queue\n"
        "RULES = [beeps]\nWATCHERS = [Queue()]\nEXECUTORS = [Beep()]\n"
    )
    engine.repository.commit_staging("hands", ADA)
    commit = engine.repository.candidate("hands", ADA)
    asked = engine.served.append("promote-requested", commit, previous=engine.in_force())
    answer = engine.event(lambda event: event["cause"] == asked["id"], "an answer")
    assert answer["kind"] == "promote", answer
    return answer


@in_campaign  # hosts that end are counted as watchers that break
def test_a_promote_whose_watcher_breaks_again_and_again_is_taken_back_by_itself(
    engine: Engine, tmp_path: Path
) -> None:
    engine.begin()
    broken = WATCHER.replace(
        'return Reading({"jobs"', 'raise RuntimeError("broken")\n        return Reading({"jobs"'
    )
    commit = promoted_hands(engine, tmp_path / "spool", broken, EXECUTOR)["subject"]
    rolled = engine.event(lambda event: True, "it is taken back", "rollback")
    assert rolled["data"]["rejected"] == commit
    assert "broke down at least 3 times" in rolled["data"]["why"]
    errors = [event for event in engine.events("error") if event["subject"] == "watcher:queue"]
    assert [event["data"]["commit"] for event in errors] == [commit] * 3
    assert "broken (watchers/queue.py:" in errors[0]["data"]["message"]


@in_campaign
def test_what_a_bad_world_lets_fail_is_borne_and_what_breaks_by_itself_takes_the_promote_back(
    engine: Engine, tmp_path: Path
) -> None:
    engine.begin()
    failing = EXECUTOR.replace(
        'Path("{spool}/beeped")',
        'if Path("{spool}/bad").exists():\n            raise RuntimeError("broken")\n'
        '        raise PulseError("the loudspeaker is off")\n        Path("{spool}/beeped")',
    ).replace("Policy, Result", "Policy, PulseError, Result")
    commit = promoted_hands(engine, tmp_path / "spool", WATCHER, failing)["subject"]
    (tmp_path / "spool" / "one.job").touch()
    engine.served.eventually(lambda: len(engine.events("effect-failed")) >= 6, "it fails in earnest")
    assert engine.in_force() == commit
    assert not [event for event in engine.events("error") if event["subject"] == "executor:beep"]
    (tmp_path / "spool" / "bad").touch()
    rolled = engine.event(lambda event: True, "it is taken back", "rollback")
    assert rolled["data"]["rejected"] == commit
    assert "broke down" in rolled["data"]["why"]


STOP_ALL = """
import os, subprocess
for stop in (
    lambda: [os.kill(int(thread), 19) for thread in os.listdir(f"/proc/{os.getppid()}/task")],
    lambda: subprocess.run(["sh", "-c", f"kill -STOP {os.getppid()}"], stderr=subprocess.DEVNULL),
):
    try:
        stop()
    except Exception:
        pass
"""


def test_an_engines_own_watcher_and_executor_sense_and_act_and_go_with_their_commit(
    running: Engine, tmp_path: Path
) -> None:
    """A rule that wants to stop the daemon does not, and a killed process is back."""
    engine, spool = running, tmp_path / "spool"
    promoted_hands(engine, spool, WATCHER, EXECUTOR, before=STOP_ALL)
    assert engine.served.daemon is not None
    (spool / "one.job").touch()
    engine.served.eventually((spool / "beeped").exists, "it beeps")
    engine.recover()
    told = Path(f"/proc/{engine.served.daemon.pid}/stat").read_text().rpartition(") ")[2]
    assert told[0] in "SR"
    acked = engine.event(
        lambda event: event["data"].get("result", {}).get("times") == 1, "it is acked", "effect-acked"
    )
    assert acked["actor"] == "pulse"
    assert engine.served.status()["vitals"]["queue"] == {"jobs": 1}
    engine.served.append("rollback-requested")
    engine.event(lambda event: True, "it is gone back", "rollback")
    engine.served.eventually(lambda: "queue" not in engine.served.status()["vitals"], "the watcher is gone")
    with pytest.raises(PulseError, match="beep"):
        engine.served.append("effect", "beep", action="beep", key="beep-by-hand")


@in_campaign  # the simulation has the same
def test_a_promote_whose_host_ends_again_and_again_is_taken_back_by_itself(engine: Engine) -> None:
    """On a busy machine a host that is late is replaced, too, and that counts: then fewer are killed."""
    engine.begin()
    commit = engine.promote(GOOD.replace("good", "better"), "better")["subject"]
    killed = 0
    for _ in range(3):

        def is_up(killed: int = killed) -> bool:
            return engine.served.status()["engine"]["runs"] == commit and engine.host() != killed

        engine.served.eventually(lambda: engine.events("rollback") or is_up(), "another host is up")
        if engine.events("rollback"):
            break
        killed = engine.host()
        os.kill(killed, signal.SIGKILL)
    rolled = engine.event(lambda event: True, "it is taken back", "rollback")
    assert rolled["data"]["rejected"] == commit
