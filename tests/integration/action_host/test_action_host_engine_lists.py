"""Code of rules and projections is not run where watchers and executors are, which may do more."""

import textwrap
from itertools import cycle
from pathlib import Path

import pytest

from pulse_core.ports.engine import CannotLoad, Revision
from tests.integration.action_host.action_host_scene import HEAD, Scene, at_work, executor, watcher
from tests.long_form import sampled

FINE = watcher("return Reading({'well': True})", timeout=20.0)


def engine(root: Path, listing: str, **files: str) -> Revision:
    """An engine with this `engine.py` and these files, `rules__x` for `rules/x.py`; a watcher is listed."""
    known = {"watchers__queue": HEAD + FINE, "rules__x": f"open({str(root / 'ran')!r}, 'w')\n", **files}
    for name, text in known.items():
        file = root / (name.replace("__", "/").replace("INIT", "__init__") + ".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
    for folder in ("rules", "projections", "watchers", "executors"):
        (root / folder).mkdir(exist_ok=True)
        (root / folder / "__init__.py").touch()
    whole = "from watchers.queue import Queue\nWATCHERS = [Queue()]\nRULES = []\n" + textwrap.dedent(listing)
    (root / "engine.py").write_text(whole)
    return Revision("0" * 40, str(root))


async def looked(scene: Scene) -> None:
    assert await scene.look() == {"well": True}


LISTINGS = {
    "a name": "from rules.x import x\nRULES = [x]",
    "the module": "import rules.x\nRULES = [rules.x.x]",
    "the module by another name": "import rules.x as r\nRULES = [r.x]",
    "the module of the package": "from rules import x\nRULES = [x.x]",
    "two names": "from rules.x import x as a, y as b\nRULES = [a, b]\nassert a != b and a == a and len({a, b}) == 2",
    "everything": "from rules.many import *\nRULES = [one, two, three, LATE]",
    "what it calls everything": "from rules.said import *\nRULES = [one]\nassert 'os' not in globals()",
    "everything of a package": "from rules.deep import *\nRULES = [one, three]",
    "a made one": "from rules.x import made\nRULES = [made(threshold=3), made.by.hand(2)]",
    "joined lists": "from rules.x import A, B\nRULES = [*A, *B, *[a for a in B]] + A\nRULES += B\nRULES = A + B + [1]",
    "a list's copy": "from rules.x import A\nRULES = list(A) + [A[0], A[1:]]",
    "partially": "from functools import partial\nfrom rules.x import x\nRULES = [partial(x, high=3)]",
    "by what is there": """
        import importlib, pkgutil, rules
        found = [m.name for m in pkgutil.iter_modules(rules.__path__)]
        assert 'x' in found, found
        RULES = [importlib.import_module(f'rules.{name}').rule for name in found]
    """,
    "projections": """
        from pulse_core import Projection
        from projections.p import deaths, step, START
        PROJECTIONS = {'deaths': deaths, 'own': Projection(start=START, step=step, version=step.version)}
        PROJECTIONS = {**PROJECTIONS, **deaths.more} | deaths.many
    """,
    "names of functions": "from rules.x import x\nassert (x.__name__, x.__module__) == ('x', 'rules.x')\nrepr(x)",
    "annotations": """
        from typing import Optional
        from rules.x import State
        seen: list[State] = []
        def f(a: State, b: Optional[State] = None) -> State: ...
    """,
    "both lists at once": """
        from rules.x import x
        RULES, EXECUTORS = [x], []
    """,
    "what may be missing": """
        try:
            from rules.nowhere import x
        except ModuleNotFoundError:
            RULES = []
        else:
            raise AssertionError
    """,
}
MORE = {
    "rules__many": "import os\ndef one(): ...\nasync def two(): ...\nclass three: ...\nif True:\n    LATE = _no = 1\n1/0",
    "rules__said": "import os\n__all__ = ['one']\none = 1\n",
    "rules__deep__INIT": "from rules.deep.a import *\nfrom .b import *\n",
    "rules__deep__a": "one = 1/0\n",
    "rules__deep__b": "three = 1/0\n",
    "projections__p": "raise SystemExit\n",
}


async def test_an_engine_may_list_what_is_not_run(tmp_path: Path) -> None:
    """One after the other in one file: a host for each would take half a minute."""
    listing = "\n".join(f"# {name}\n{textwrap.dedent(lines)}" for name, lines in LISTINGS.items())
    async with at_work(engine(tmp_path, listing, **MORE)) as scene:
        await looked(scene)
        assert scene.hands.faults == ()
    assert not (tmp_path / "ran").exists()


async def test_a_module_of_a_rule_that_attacks_is_not_even_read(tmp_path: Path) -> None:
    attack = "import os\nos.kill(os.getppid(), 19)\nos.kill(-1, 9)\nos._exit(1)\n"
    async with at_work(engine(tmp_path, "from rules.bad import x\nRULES = [x]", rules__bad=attack)) as scene:
        await looked(scene)


WANTED = {
    "a constant": "from rules.x import LIMIT",
    "the module": "import rules.x as r",
    "everything": "from rules.x import *",
    "the package": "import rules",
    "a projection": "from projections.x import start",
}


@pytest.mark.parametrize(("name", "first"), sampled([*zip(WANTED, cycle([True, False]))], 3))
async def test_an_executor_that_imports_from_rules_is_refused_with_its_line(
    name: str, first: bool, tmp_path: Path
) -> None:
    deed = "import asyncio\n" + WANTED[name] + "\n" + HEAD + executor("return Result({})")
    listing = ["from executors.beep import Beep\n", "import rules.x, projections.x\n"]
    listing = listing if first else listing[::-1]
    files = {"executors__beep": deed, "projections__x": "1/0"}
    with pytest.raises(CannotLoad) as caught:
        async with at_work(engine(tmp_path, "".join(listing) + "EXECUTORS = [Beep()]", **files)):
            pass
    assert "is not run here" in str(caught.value)
    assert "put what watchers and executors need of it into a module beside engine.py" in str(caught.value)
    assert str(caught.value).endswith("(executors/beep.py:2)")


async def test_a_module_that_both_need_is_run(tmp_path: Path) -> None:
    deed = HEAD + "from shared import LIMIT\n" + executor("return Result({'limit': LIMIT})",
                                                          policy="Policy(Safety.IDEMPOTENT, timeout=20.0)")  # fmt: skip
    listing = "from executors.beep import Beep\nfrom rules.y import y\nEXECUTORS = [Beep()]\nRULES = [y]"
    files = {
        "executors__beep": deed,
        "shared": "LIMIT = 7",
        "rules__y": "from shared import LIMIT\ny = LIMIT",
    }
    async with at_work(engine(tmp_path, listing, **files)) as scene:
        assert (await scene.act()).data == {"limit": 7}


HELD = {
    "what it is given": "from rules.x import LIMIT\nWATCHERS = [Queue(LIMIT)]",
    "what it is": "import rules.x as r\nWATCHERS = [r.LIMIT]",
    "what is made of it": "from rules.x import LIMIT\nmore = [LIMIT]\ndef made(): return more\nWATCHERS += made()",
    "a list of both": "from rules.x import x\nRULES, EXECUTORS = EXECUTORS, RULES = [x], []",
}


@pytest.mark.parametrize("name", sampled(HELD, 2))
async def test_what_is_listed_with_something_of_rules_is_left_out_and_told(name: str, tmp_path: Path) -> None:
    listing = HELD[name]
    async with at_work(engine(tmp_path, listing)) as scene:
        await looked(scene)
        (fault,) = scene.hands.faults
        assert fault.whose == "engine"
        assert "is not run here: rules and projections run in a process of their own" in fault.message
        assert fault.message.endswith(f"(engine.py:{3 + len(listing.splitlines())})")
    assert not (tmp_path / "ran").exists()


async def test_what_is_done_beside_the_lists_is_run(tmp_path: Path) -> None:
    deed = HEAD + executor("return Result({})", policy="Policy(Safety.IDEMPOTENT, timeout=20.0)")
    listing = """
        import sys, rules, os.path
        sys.path.append(os.path.join(os.path.dirname(__file__), "lib"))
        from beep import Beep
        def made():
            return [Beep()]
        if True:
            EXECUTORS = made()
    """
    async with at_work(engine(tmp_path, listing, lib__beep=deed)) as scene:
        assert (await scene.act()).data == {}
        assert scene.hands.faults == ()
