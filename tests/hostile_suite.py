"""Whole daemons under attack: what they guard is killed meanwhile, and their logs say how soon it is back.

Two daemons run beside each other, one with a hostile engine or hostile logs and one that nobody attacks: whatever else
the machine does holds up both. Somebody else has begun them, as one user or as a system install. To attack them from
within the machine they run on: `python -m tests.hostile_suite CLASS HOSTILE HARMLESS`, which prints what came of it as
JSON.
"""

import base64
import itertools
import json
import os
import random
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pulse_adapters.config.home import Home
from pulse_adapters.git.repository import Repository
from pulse_adapters.git.revisions import ensure_revision
from pulse_adapters.ipc.client import Client
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_core.composition import OWN_NAMES
from pulse_core.model.errors import PulseError
from pulse_core.model.kinds import Effect
from pulse_core.ports.readers import EventQuery
from tests.campaign.forgery import Forger
from tests.hostile_engines import AUTHOR, HEAD, RULES, WISHES, engines, rules, wishing
from tests.integration.rule_host.rule_host_attacks import ATTACKS
from tests.integration.rule_host.rule_host_engines import HEAD as RULE_HEAD
from tests.long_form import sample

TIMES = 3
"""How many times as long as where nobody attacks the 99th of a hundred recoveries may take, on any machine."""
LATEST_US, QUIET_US = 20_000, 10_000
"""What it takes at most on a quiet machine: on one where it takes no longer than this without an attack."""
PATIENCE = 60.0
CONFIG = """
[daemon]
tick_ms = 200
[rollback]
errors = 100
breakdowns = 100
[engine]
repeat = "0s"
quarantine = 1000
[executors.run-command]
allow = ["/bin/true", "/bin/sleep"]
[[process]]
name = "victim"
start = ["sleep", "9017"]
restart = {{ max = 1000, within = "10m", backoff = "0s", healthy_after = "0s", grace = "0s" }}
[budget]
actions_per_minute = 0
[[log]]
path = "{home}/followed/*.log"
keywords = ["ERROR"]
"""
Files = Mapping[str, str]


def config(home: Path) -> str:
    """The settings of a daemon that is attacked, or of the one beside it."""
    return CONFIG.format(home=home)


# Engines

NUMBER = 123_456_789
"""Stands for the number of the request in messages that are forged beforehand."""
LARGEST = 200_000
FORGES = """
import base64, os, random, sys

MESSAGES = [base64.b85decode(one) for one in {messages!r}]


def forge():
    frame, number = sys._getframe(), random.choice((1, 2, 3))
    while frame:
        for name in ("request", "order", "begin"):
            if isinstance(found := frame.f_locals.get(name), dict) and "id" in found:
                number = found["id"]
        frame = frame.f_back
    left = random.choice(MESSAGES).replace(b'"id": {number}', b'"id": %9d' % number)
    while left:
        left = left[os.write(3, left):]
"""
FORGING_RULE = """

async def forges(prev, curr, inner):
    if random.random() < 0.3:
        forge()
    return await inner(prev, curr)
"""
FORGING_WATCHER = """
from pulse_core import Reading


class Forges:
    name = key = "forges"
    interval, timeout = 1.0, 1.0

    async def collect(self):
        forge()
        return Reading({})

    def should_wake(self, window):
        return True
"""
SLEEPS = """
import asyncio
from pydantic import BaseModel
from pulse_core import Policy, Result, Safety


class Nothing(BaseModel):
    pass


class Sleeps:
    action, params = "sleeps", Nothing

    def policy(self, params):
        return Policy(Safety.IDEMPOTENT, timeout=3600)

    def check(self, params):
        pass

    async def execute(self, effect, params, event):
        {deed}
        return Result({{}})

    async def verify(self, effect, params, event):
        return None
"""
SPINS = """
import subprocess
from pulse_core import Reading


class Spins:
    name = key = "spins"
    interval, timeout = {every}, {every}
    running = []

    async def collect(self):
        {deed}
        return Reading({{}})

    def should_wake(self, window):
        return False
"""
DEEDS = {
    "programs that spin": "self.running += [subprocess.Popen(['sh', '-c', 'while :; do :; done']) for _ in range(4)]",
    "a loop that is held": "while True: pass",
    "all memory": "while True: self.running.append(bytearray(2**24))",
}

ACTS = """
import ctypes, glob, pwd, random, resource, signal, stat, subprocess, sys, time
from contextlib import suppress

BEGUN = []


def begin(words, most=4):
    while len(BEGUN) < most:
        BEGUN.append(subprocess.Popen(["setsid", "--fork", "sh", "-c", f"({words}) &"], env={}))


def others():
    return [int(one[6:]) for one in glob.glob("/proc/[0-9]*") if int(one[6:]) != os.getpid()]


def refused(function, *args):
    with suppress(OSError, ValueError):
        function(*args)


def keep():
    os.setsid()
    if os.fork() == 0:
        time.sleep(30)
    os._exit(0)


def act():
    random.choice([one for name, one in globals().items() if name.startswith("act_")])()
"""
ACTS_OF_ANY_USER = {
    "programs that detach themselves and spin": "begin('timeout 20 sh -c \"while :; do :; done\"')",
    "programs that take memory": (
        "begin(f'exec {sys.executable} -c \"[bytearray(2**22) for _ in iter(int, 1)]\"')"
    ),
    "forks that keep every descriptor": (
        "while len(BEGUN) < 4:\n    BEGUN.append(os.fork() or keep())\nos._exit(0)"
    ),
    "all descriptors, and garbage into each": (
        "with suppress(OSError):\n    while True:\n        BEGUN.append(os.open('/dev/null', os.O_WRONLY))\n"
        "for number in range(3, 64):\n    refused(os.write, number, os.urandom(4096))"
    ),
    "priorities": (
        "refused(os.nice, -20)\nrefused(os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(50))\n"
        "refused(os.setpriority, os.PRIO_PROCESS, os.getppid(), 19)\nuntil = time.monotonic() + 0.5\n"
        "while time.monotonic() < until:\n    pass"
    ),
    "a wait that SIGKILL alone ends": (
        "end, other = os.pipe()\nos.close(other)\nopens = (os.POSIX_SPAWN_OPEN, 0, f'/proc/self/fd/{end}', os.O_RDONLY, 0)\n"
        "os.posix_spawn('/bin/true', ['true'], {}, file_actions=[opens])"
    ),
    "a stop": "os.kill(os.getpid(), signal.SIGSTOP)",
    "an end of its group": "os.killpg(0, signal.SIGKILL)",
}
"""What watchers and executors may do as whatever user: their host alone has to bear it, and is replaced."""
BY_ANOTHER_USER = "assert pwd.getpwuid(os.geteuid()).pw_name.startswith('pulse-engine-')\n"
"""Nothing of what follows is done as a user to whom it is allowed."""
ACTS_OF_ANOTHER_USER = {
    "signals to everybody": (
        "for pid in others():\n    refused(os.kill, pid, signal.SIGSTOP)\nos.kill(-1, signal.SIGKILL)"
    ),
    "traces, limits and memory of everybody": (
        "for pid in others():\n    ctypes.CDLL(None).ptrace(16, pid, 0, 0)\n"
        "    refused(resource.prlimit, pid, resource.RLIMIT_NOFILE, (0, 0))\n"
        "    for file in ('mem', 'oom_score_adj', 'clear_refs'):\n"
        "        refused(lambda: open(f'/proc/{pid}/{file}', 'w').write('1000'))"
    ),
    "as many processes as it may have": "begin('while :; do sleep 30 & done')",
    "programs that are setuid": (
        "for path in glob.glob('/usr/bin/*'):\n    if os.path.isfile(path) and os.stat(path).st_mode & stat.S_ISUID:\n"
        "        BEGUN.append(subprocess.Popen([path], stdin=subprocess.DEVNULL))"
    ),
}
"""What is refused to a user of their own, and what is not promised for the daemon's."""


def forged(seed: int) -> Files:
    """An engine whose rule and watcher say what hosts must not; with every third seed already as it is loaded."""
    forger = Forger(seed, honest=0.0)
    folds, collects = forging(forger, "fold"), forging(forger, "collect", "execute", "nudged")
    listed = "from own import forges\nfrom forger import Forges\nRULES, WATCHERS = [forges], [Forges()]\n"
    if seed % 3 == 2:
        listed += forging(forger, "load", "confine", "actions") + "\nforge()\n"
    return {"engine.py": listed, "own.py": folds + FORGING_RULE, "forger.py": collects + FORGING_WATCHER}


def forging(forger: Forger, *verbs: str) -> str:
    """Source that forges answers to these requests."""
    made = (forger.reply(forger.dice.choice(verbs), NUMBER) for _ in range(60))
    return FORGES.format(
        messages=[base64.b85encode(one) for one in made if len(one) < LARGEST], number=NUMBER
    )


def greedy(*deeds: str) -> Files:
    """An engine that takes what it can: slots, budgets, the loop's time, and what else these deeds name."""
    each = 100 // len(WISHES)
    wishes = [
        wishing(wish, each)
        for wish in (*WISHES.values(), "Effect(action='sleeps', key=f's-{curr.tick}-{n}')")
    ]
    own = SLEEPS.format(deed="await asyncio.sleep(3600)") + "".join(
        SPINS.format(deed=deed, every=5.0)
        .replace("Spins", f"Spins{number}")
        .replace("spins", f"spins{number}")
        for number, deed in enumerate(deeds)
    )
    watchers = ", ".join(f"Spins{number}()" for number in range(len(deeds)))
    return with_own(rules(RULES["inner without end"], *wishes), own, watchers)


def acting(acts: Iterable[str]) -> Files:
    """An engine whose watcher and executor do one of these at every call."""
    own = ACTS + "".join(f"\ndef act_{n}():\n{textwrap.indent(one, '    ')}\n" for n, one in enumerate(acts))
    own += SLEEPS.format(deed="act()")
    own += SPINS.format(deed="act(); raise RuntimeError('it has attacked')", every=1.0)
    # About once a second: more would be an attack on the commits of the log, as those of starvation.
    wish = "if curr.tick % 5:\n    return await inner(prev, curr)\n"
    wish += "return (await inner(prev, curr)).plus(Effect(action='sleeps', key=f's-{curr.tick}'))"
    return with_own(rules(wish), own, "Spins()")


def with_own(files: Files, own: str, watchers: str) -> Files:
    """The same engine with the executor and the watchers that this source has."""
    listed = f"from own import *\nEXECUTORS, WATCHERS = [Sleeps()], [{watchers}]\n"
    return {**files, "engine.py": files["engine.py"] + listed, "own.py": HEAD + own}


def starving() -> Iterator[Files]:
    """Engines that would starve survival: all in one, and in the long form each."""
    yield greedy("self.running.append('x' * 2**20)")
    if sample(False, True):
        for deed in DEEDS.values():
            yield greedy(deed)
        yield from engines().values()


def of_any_user() -> Iterator[Files]:
    """Engines whose watchers and executors attack: all in one, and in the long form each."""
    yield acting(ACTS_OF_ANY_USER.values())
    for one in sample({}, ACTS_OF_ANY_USER).values():
        yield acting([one])


def of_another_user() -> Iterator[Files]:
    """The same for what only a user of their own is refused."""
    acts = [BY_ANOTHER_USER + one for one in ACTS_OF_ANOTHER_USER.values()]
    yield acting(acts)
    for one in sample([], acts):
        yield acting([one])


def attacking() -> Iterator[Files]:
    """Engines of one hostile rule each: some, or all of them."""
    listed = "from rules.own import bad\nRULES = [bad]\n"
    for one in itertools.islice(ATTACKS.values(), 0, None, sample(35, 1)):
        yield {"engine.py": listed, "rules/own.py": RULE_HEAD + one.source}


# Daemons


def begun_after(events: Sequence[Mapping[str, Any]], at: int) -> int | None:
    """How long after this moment survival began a restart, be it one more attempt at one that it wished before; None if
    that is not recorded."""
    restarts = _restarts(events)
    begun = [one for one in events if one["kind"] == "effect-executing" and one["subject"] in restarts]
    return min((int(one["mono"]) - at for one in begun if one["mono"] >= at), default=None)


def was_replaced(events: Sequence[Mapping[str, Any]], at: int) -> bool:
    """Whether a restart that had begun before this moment ended after it: who was killed was being replaced."""
    restarts = _restarts(events)
    ended = {one["subject"] for one in events if one["kind"] == "effect-acked" and one["mono"] >= at}
    return not restarts.isdisjoint(ended)


def _restarts(events: Sequence[Mapping[str, Any]]) -> Set[str]:
    wished = (one for one in events if one["kind"] == Effect.kind and one["data"].get("survival"))
    return {one["id"] for one in wished if one["data"]["action"] == "restart-process"}


class Guarded:
    """What a running daemon guards, as its log tells."""

    def __init__(self, home: Home) -> None:
        self.home, self.seq, self.before, self.pid = home, 0, 0, 0
        self.until_up()

    def events(self, *kinds: str, since: int) -> Sequence[Mapping[str, Any]]:
        """Those after a row of the log."""
        with SqliteEventReader(self.home.path) as log:
            return [
                {**row.spelled(), "mono": row.mono}
                for row in log.events(EventQuery(kinds=kinds, since_seq=since))
            ]

    def until_up(self) -> None:
        """Wait for another life."""
        until = time.monotonic() + PATIENCE
        while True:
            ups = self.events("process-up", since=self.seq)
            if ups and ups[-1]["data"]["pid"] != self.pid:
                self.seq, self.pid = ups[-1]["seq"], ups[-1]["data"]["pid"]
                return
            assert time.monotonic() < until, f"what {self.home.path} guards is not back"
            time.sleep(0.01)

    def recovery_us(self) -> int:
        """How long after a kill its replacement is begun, in the kernel's time."""
        until = time.monotonic() + PATIENCE
        while (took := self._killed(until)) is None:
            time.sleep(0.05)
        return took

    def _killed(self, until: float) -> int | None:
        """The same of one kill; None if that told nothing, since a restart was under way."""
        at, since, self.before = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000, self.before, self.seq
        os.kill(self.pid, signal.SIGKILL)
        self.until_up()
        while True:  # what was held in memory may be recorded later
            found = self.events("effect", "effect-executing", "effect-acked", since=since)
            if (took := begun_after(found, at)) is not None:
                return took
            if was_replaced(found, at):
                return None
            assert time.monotonic() < until, f"no restart is recorded after {at}: {found[-20:]}"
            time.sleep(0.01)

    def promote(self, files: Files) -> bool:
        """Bring these files into force; False if the daemon says no."""
        repository = Repository(self.home.path)
        staging = repository.staging().path
        for name, text in files.items():
            (staging / name).parent.mkdir(exist_ok=True)
            (staging / name).write_text(text)
        repository.commit_staging("attack", AUTHOR)
        commit = repository.candidate("attack", AUTHOR)
        ensure_revision(self.home.path, commit)
        with Client(self.home.socket, timeout=PATIENCE) as client:
            until = time.monotonic() + PATIENCE
            while not (previous := client.ask("status")["engine"]["commit"]):
                assert time.monotonic() < until, "no engine is in force"
                time.sleep(0.05)
            draft = {"kind": "promote-requested", "subject": commit, "data": {"previous": previous}}
            asked = client.ask("append", drafts=[draft])["events"][0]
        while True:
            for one in self.events("promote", "promote-refused", since=asked["seq"]):
                if one["cause"] == asked["id"]:
                    return self._followed(repository, commit) if one["kind"] == "promote" else False
            assert time.monotonic() < until, "no promote is answered"
            time.sleep(0.02)

    def _followed(self, repository: Repository, commit: str) -> bool:
        until = time.monotonic() + PATIENCE
        while repository.head() != commit and time.monotonic() < until:  # unless it is taken back at once
            time.sleep(0.02)
        return True


# Attacks

Attack = Callable[[Guarded, Guarded], bool]
"""Begins on the first one, and does what is harmless to the second; whether it is in force."""
FOLLOWED = 1_000
"""How many logs are followed, beside one."""


def promoted(files: Files) -> Attack:
    """A hostile engine is in force."""

    def begin(target: Guarded, beside: Guarded) -> bool:
        with suppress(PulseError):  # the last one is just being taken back
            return target.promote(files)
        return False

    return begin


def told(number: int) -> Attack:
    """Each followed log has a line that is looked for, of a kind of its own."""

    def begin(target: Guarded, beside: Guarded) -> bool:
        for one, count in ((target, FOLLOWED), (beside, 1)):
            (folder := one.home.path / "followed").mkdir(exist_ok=True)
            for log in range(count):
                with (folder / f"{log}.log").open("a") as file:
                    file.write(f"ERROR {'again and ' * number}again\n")
        return True

    return begin


FORGED, STARVATION, RULES_THAT_ATTACK, LOGS = "forged messages", "starvation", "rules that attack", "logs"
ACTIONS, ACTIONS_APART = "watchers and executors", "watchers and executors of another user"
CLASSES: Mapping[str, Callable[[], Sequence[Attack]]] = {
    FORGED: lambda: [promoted(forged(seed)) for seed in range(sample(2, 40))],
    STARVATION: lambda: [*map(promoted, starving())],
    ACTIONS: lambda: [*map(promoted, of_any_user())],
    ACTIONS_APART: lambda: [*map(promoted, of_another_user())],
    RULES_THAT_ATTACK: lambda: [*map(promoted, attacking())],
    LOGS: lambda: [told(number) for number in range(sample(2, 20))],
}
KILLS = sample(4, 12)
"""How often what is guarded is killed during each attack of a class, beside the same number where there is none."""
MORE, ROUNDS = 10, sample(4, 0)
"""How often it is killed beyond that where too many of so few recoveries were slow, and in how many rounds at most: of a
handful a neighbour on the machine delays two, and of ten more not; a stall is there in each round."""


@dataclass(frozen=True)
class Outcome:
    """What came of attacks. hostile, harmless: microseconds of each recovery; attacks, begun: those that were to be in
    force, and that were; traces: errors and matching lines in the attacked daemon's log; wrong: what must not be in it."""

    hostile: Sequence[int]
    harmless: Sequence[int]
    attacks: int
    begun: int
    traces: int
    wrong: Sequence[str] = ()

    def verdict(self) -> str:
        """What is promised and does not hold; empty if all does."""
        if not is_in_time(self.hostile, self.harmless):
            return f"too slow: {self}"
        if self.wrong:
            return str(self.wrong)
        return "" if self.begun and self.traces else f"no attack: {self}"

    def __str__(self) -> str:
        spread = (
            f"{name} p50 {sorted(one)[len(one) // 2] / 1000:.1f} p99 {p99(one) / 1000:.1f} worst {max(one) / 1000:.1f} ms"
            for name, one in (("hostile", self.hostile), ("harmless", self.harmless))
        )
        begun = f"{self.begun} of {self.attacks} attacks in force"
        return f"{len(self.hostile)} kills, {begun}, {self.traces} traces; {'; '.join(spread)}"


def is_in_time(hostile: Sequence[int], harmless: Sequence[int]) -> bool:
    """Whether these recoveries hold what is promised, beside those where nobody attacks."""
    ours, theirs = p99(hostile), p99(harmless)
    return ours <= TIMES * theirs and (ours <= LATEST_US or theirs > QUIET_US)


def p99(took: Sequence[int]) -> int:
    """The 99th of a hundred; of fewer, the longest but one, since any machine holds up one."""
    return sorted(took)[min(len(took) - 2, int(0.99 * len(took)))]


def attack(name: str, hostile: Home, harmless: Home) -> Outcome:
    """Attack one of two running daemons in all ways of a class, and kill what both guard meanwhile."""
    target, beside = Guarded(hostile), Guarded(harmless)
    dice, begun = random.Random(1), 0
    ours, theirs = list[int](), list[int]()

    def kill(times: int) -> None:
        for _ in range(times):
            for one, took in ((target, ours), (beside, theirs)):
                time.sleep(dice.uniform(0.03, 0.1))
                took.append(one.recovery_us())

    for begin in (attacks := CLASSES[name]()):
        begun += begin(target, beside)
        kill(KILLS)
    for _ in range(ROUNDS):
        if is_in_time(ours, theirs):
            break
        kill(MORE)
    with Client(hostile.socket, timeout=PATIENCE) as client:
        wrong = [] if client.ask("status")["daemon"]["state"] == "running" else ["the daemon does not run"]
    errors = target.events("error", since=0)
    own = {f"rule:{one}" for one in OWN_NAMES} | {"daemon"}
    wrong += [f"{one['subject']}: {one['data']['message']}" for one in errors if one["subject"] in own]
    traces = len(errors) + len(target.events("log-matched", since=0))
    return Outcome(ours, theirs, len(attacks), begun, traces, wrong)


def main(name: str, hostile: str, harmless: str) -> None:
    """Attack, and print the outcome."""
    print(json.dumps(asdict(attack(name, Home(Path(hostile)), Home(Path(harmless))))))


if __name__ == "__main__":
    main(*sys.argv[1:])
