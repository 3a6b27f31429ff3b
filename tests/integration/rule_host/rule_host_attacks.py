"""Rules that attack, and what must be said of each."""

from dataclasses import dataclass

from pulse_core.settings.settings import Settings
from tests.integration.rule_host.rule_host_engines import HASTY, SETTINGS, rule


@dataclass(frozen=True)
class Attack:
    """An attack: its rule, whether the host outlives it, and words of the fault (none: nothing wrong is to be seen)."""

    source: str
    lives: bool = True
    says: str = ""
    whose: str = "rule:bad"
    exact: bool = True

    @property
    def settings(self) -> Settings:
        """With a deadline that comes soon, if it uses that up."""
        return HASTY if any(word in self.says for word in ("long", "spelled")) else SETTINGS


def attack(body: str, before: str = "", **more: object) -> Attack:
    """An attack whose fault is at the line marked `here`, if one is marked."""
    return Attack(rule(body, before=before), **more)  # type: ignore[arg-type]  # tests say what fits


ATTACKS = {
    "spins": attack("while True:\n    x = 1  # here", says="too long", exact=False),
    "spins and catches all": attack(
        """
        while True:
            try:
                while True:
                    x = 1
            except BaseException:
                pass
        """,
        lives=False,
        says="took longer than 1,000 ms",
        exact=False,
    ),
    "spins in C": attack("sum(range(10**13))  # here", lives=False, says="took longer than 1,000 ms"),
    "sleeps": attack("time.sleep(60)  # here", "import time", says="too long"),
    "switches the alarm off": attack(
        """
        signal.setitimer(signal.ITIMER_REAL, 0)
        while True:
            x = 1
        """,
        "import signal",
        lives=False,
        says="took longer than 1,000 ms",
        exact=False,
    ),
    "ignores signals": attack(
        """
        for number in (signal.SIGALRM, signal.SIGUSR1, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        sum(range(10**13))
        """,
        "import signal",
        lives=False,
        says="took longer than 1,000 ms",
        exact=False,
    ),
    "asks inner without end": attack(
        "while True:\n    await inner(prev, curr)  # here", says="inner was asked more than 100 times"
    ),
    "recurses": attack("def f():\n    f()  # here\nf()", says="RecursionError"),
    "recurses without a limit": attack(
        """
        sys.setrecursionlimit(10**9)
        class Deep:
            def __repr__(self):
                return repr(self)
        repr(Deep())
        """,
        "import sys",
        lives=False,
        says="SIG",
        exact=False,
    ),
    "wants ten gigabytes": attack("x = bytearray(10**10)  # here", says="MemoryError"),
    "allocates step by step": attack(
        "x = []\nwhile True:\n    x.append(bytes(2**24))  # here", says="MemoryError"
    ),
    "forks": attack("os.fork()  # here", "import os", says="PermissionError"),
    "starts a thread": attack(
        "threading.Thread(target=print).start()  # here", "import threading", says="can't start new thread"
    ),
    "execs": attack('os.execv("/bin/sh", ["sh"])  # here', "import os", says="PermissionError"),
    "runs a program": attack(
        'subprocess.run(["/bin/true"])  # here', "import subprocess", says="PermissionError"
    ),
    "kills the parent": attack("os.kill(os.getppid(), 9)  # here", "import os", says="PermissionError"),
    "kills everybody": attack("os.kill(-1, 9)  # here", "import os", says="PermissionError"),
    "stops itself": attack(
        "signal.raise_signal(signal.SIGSTOP)", "import signal", lives=False, says="took longer", exact=False
    ),
    "ends itself": attack("os._exit(3)", "import os", lives=False, says="ended with status 3", exact=False),
    "ends as if all were well": attack(
        "os._exit(0)", "import os", lives=False, says="ended with status 0", exact=False
    ),
    "crashes": attack(
        "ctypes.string_at(0)  # here", "import ctypes", lives=False, says="was ended by SIGSEGV"
    ),
    "aborts": attack("os.abort()  # here", "import os", lives=False, says="was ended by SIGABRT"),
    "closes every descriptor": attack(
        "os.closerange(0, 100)", "import os", lives=False, says="its host ended with status 4", exact=False
    ),
    "forges answers": attack(
        """
        body = b'{"id": 1, "effects": []}'
        os.write(3, len(body).to_bytes(4, "big") + body)
        os.write(3, len(body).to_bytes(4, "big") + body)
        """,
        "import os",
        lives=False,
        says="",
        whose="",
        exact=False,
    ),
    "blames the daemon": attack(
        """
        said = {"id": 3, "effects": [], "tick_ms": 1, "notes": [], "layers": [], "faults": [["daemon", "it did it"]]}
        body = json.dumps(said).encode()
        os.write(3, len(body).to_bytes(4, "big") + body)
        """,
        "import json, os",
        lives=False,
        says="its host said",
        whose="engine",
        exact=False,
    ),
    "answers for a rule of survival": attack(
        """
        said = {"id": 3, "effects": [{"action": "note", "key": "k", "rule": "process_watchdog"}], "tick_ms": 1, "notes": [],
                "layers": [], "faults": []}
        body = json.dumps(said).encode()
        os.write(3, len(body).to_bytes(4, "big") + body)
        """,
        "import json, os",
        lives=False,
        says="its host said",
        whose="engine",
        exact=False,
    ),
    "wishes a number that no log takes": attack(
        "return Verdict((Effect(action='note', key='k', params={'n': 2**70}),))", says="more than 64 bits", exact=False
    ),
    "talks without end": attack(
        'os.write(3, b"x" * 65536)', "import os", lives=False, says="a message of", whose="engine", exact=False
    ),
    "opens a socket": attack("socket.socket()  # here", "import socket", says="PermissionError"),
    "starts a loop": attack("asyncio.run(asyncio.sleep(0))", "import asyncio", says="Permission", exact=False),
    "awaits the loop": attack("await asyncio.sleep(0)", "import asyncio", says="may await nothing but", exact=False),
    "writes a file": attack('open("/var/tmp/pulse-attack", "w")  # here', says="PermissionError"),
    "writes into its own revision": attack('open(__file__, "a")  # here', says="PermissionError"),
    "reads its parent's environment": attack(
        'open(f"/proc/{os.getppid()}/environ", "rb").read()  # here', "import os", says="PermissionError"
    ),
    "reads what is secret": attack('open("/etc/shadow").read()  # here', says="PermissionError"),
    "fills its scratch with one file": attack(
        """
        with open(os.path.join(os.environ["TMPDIR"], "x"), "wb") as file:
            while True:
                file.write(b"x" * 10**6)  # here
        """,
        "import os",
        says="File too large",
        exact=False,
    ),
    "raises SystemExit": attack("raise SystemExit(0)  # here", says="SystemExit"),
    "raises KeyboardInterrupt": attack("raise KeyboardInterrupt  # here", says="KeyboardInterrupt"),
    "raises GeneratorExit": attack("raise GeneratorExit  # here", says="GeneratorExit"),
    "raises CancelledError": attack(
        "raise asyncio.CancelledError  # here", "import asyncio", says="CancelledError, which is no Exception"
    ),
    "answers a moment that is no number": attack(
        "return Verdict(tick_ms=float('nan'))", says="tick_ms is nan; it must be a whole number", exact=False
    ),
    "raises what nobody catches": attack(
        "raise Worse('!')  # here", "class Worse(BaseException):\n    pass", says="Worse: !"
    ),
    "raises what cannot be spelled": attack(
        "raise Mute  # here",
        "class Mute(Exception):\n    def __str__(self):\n        raise SystemExit",
        says="cannot be spelled",
    ),
    "raises what takes long to spell": attack(
        "raise Mute  # here",
        "class Mute(Exception):\n    def __str__(self):\n        while True: pass",
        says="cannot be spelled",
    ),
    "answers nothing": attack("return None", says="returned None", exact=False),
    "answers a number": attack("return 42", says="returned a value of the type int", exact=False),
    "answers words": attack("return (['words'], 1)", says="one of the effects is a value of the type str", exact=False),
    "answers half a verdict": attack("return Verdict(effects=None)", says="effects is None", exact=False),
    "answers too many effects": attack(
        "e = Effect(action='note', key='k')\nreturn Verdict((e,) * 10**5)", says="100,000 effects", exact=False
    ),
    "answers an endless sequence": attack(
        "return (Endless(), 1)",
        """
        from collections.abc import Sequence
        class Endless(Sequence):
            def __len__(self): return 1
            def __getitem__(self, n): return n
        """,
        says="too long",
        exact=False,
    ),
    "answers an enormous effect": attack(
        "return Verdict((Effect(action='note', key='k', params={'x': 'x' * 5_000_000}),))",
        says="one rule may add",
        exact=False,
    ),
    "answers what cannot be written": attack(
        "return Verdict((Effect(action='note', key='k', params={'x': object()}),))",
        says="Unable to serialize",
        exact=False,
    ),
    "answers an effect that never was checked": attack(
        "return Verdict((Effect.model_construct(action=7, key='k'),))", says="action or key is no text", exact=False
    ),
    "answers an effect that only the daemon finds wrong": attack(
        "return (await inner(prev, curr)).plus(Effect.model_construct(action='note', key='k', params=7))",
        says="ValidationError: params: ", exact=False,
    ),
    "notes without end": attack("return Verdict(notes=('x',) * 10**5)", says="100,000 notes", exact=False),
    "notes half a character": attack("return Verdict(notes=('\\ud800',))", whose=""),
    "raises half a character": attack("raise ValueError('\\ud800')  # here", says="ValueError: "),
    "wishes half a character": attack(
        "return Verdict((Effect.model_construct(action='note', key='\\ud800'),))", says="Error", exact=False
    ),
    "says an enormous number": attack("return Verdict(tick_ms=10**5000)", says="", whose=""),
    "forges survival": attack(
        "return Verdict((Effect(action='note', key='k', survival=True, rule='survival'),))", says="", whose=""
    ),
    "prints gigabytes": attack("while True:\n    print('x' * 10**6)", says="too long", exact=False),
    "prints past Python": attack(
        "while True:\n    os.write(1, b'x' * 10**5)", "import os", says="BlockingIOError", exact=False
    ),
    "prints past Python, and waits": attack(
        "os.set_blocking(1, True)\nwhile True:\n    os.write(1, b'x' * 10**5)", "import os", says="too long", exact=False
    ),
    "replaces the onion": attack(
        "onion.Layer.__call__ = None\nonion.as_verdict = None\nreturn Verdict()",
        "from pulse_core.rules import onion",
        says="", whose="",
    ),
    "replaces Effect's checks": attack(
        """
        Effect.model_validate_json = lambda text: None
        Effect.model_validate = None
        return Verdict((Effect(action="note", key="k"),))
        """,
        says="",
        whose="*",
        exact=False,
    ),
    "changes what is frozen": attack(
        "object.__setattr__(curr, 'tick', 'x')\ncurr.effects.open.clear()\nreturn Verdict()", says="", whose=""
    ),
}  # fmt: skip

AT_IMPORT = {
    "raises": ("raise ValueError('no')  # here", "ValueError: no (rules/own.py:2)"),
    "ends Python": ("raise SystemExit(0)  # here", "SystemExit: 0 (rules/own.py:2)"),
    "spins": ("while True: pass  # here", "took too long to load (rules/own.py:2)"),
    "spins in C": ("sum(range(10**13))  # here", "took longer than 3,000 ms, and its host was ended (rules/own.py:2)"),
    "ends the process": ("import os; os._exit(0)", "its host ended with status 0"),
    "does not compile": ("def x(:", "(rules/own.py:2)"),
    "forks": ("import os; os.fork()  # here", "Operation not permitted (rules/own.py:2)"),
    "opens a socket": ("import socket; socket.socket()", "(rules/own.py:2)"),
    "reads a secret": ("open('/etc/shadow')", "Permission denied: '/etc/shadow' (rules/own.py:2)"),
}  # fmt: skip
