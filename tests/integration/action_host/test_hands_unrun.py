"""Code of rules and projections is not run where watchers and executors are, which may do more."""

import textwrap
from pathlib import Path

import pytest

from pulse_adapters.action_host.standin import NotRunHere, Standin
from pulse_core.model.errors import PulseError
from pulse_core.ports import CannotLoad, Revision
from tests.integration.action_host.hands_scene import HEAD, Scene, at_work, executor, watcher

FINE = watcher("return Reading({'well': True})", timeout=5.0)


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


@pytest.mark.parametrize("name", LISTINGS)
async def test_an_engine_may_list_what_is_not_run(name: str, tmp_path: Path) -> None:
    revision = engine(tmp_path, LISTINGS[name], **MORE)
    async with at_work(revision) as scene:
        await looked(scene)
        assert scene.hands.faults == ()
    assert not (tmp_path / "ran").exists()


async def test_a_module_of_a_rule_that_attacks_is_not_even_read(tmp_path: Path) -> None:
    attack = "import os\nos.kill(os.getppid(), 19)\nos.kill(-1, 9)\nos._exit(1)\n"
    async with at_work(engine(tmp_path, "from rules.bad import x\nRULES = [x]", rules__bad=attack)) as scene:
        await looked(scene)


async def test_a_link_to_a_rule_from_elsewhere_is_not_run_either(tmp_path: Path) -> None:
    revision = engine(tmp_path, "import shared, sys\nsys.path.append('rules')\nimport x")
    (tmp_path / "shared.py").symlink_to(tmp_path / "rules" / "x.py")
    async with at_work(revision) as scene:
        await looked(scene)
    assert not (tmp_path / "ran").exists()


WANTED = {
    "a constant": "from rules.x import LIMIT",
    "the module": "import rules.x as r",
    "everything": "from rules.x import *",
    "the package": "import rules",
    "a projection": "from projections.x import start",
}


@pytest.mark.parametrize("name", WANTED)
@pytest.mark.parametrize("first", [True, False])
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
                                                          policy="Policy(Safety.IDEMPOTENT, timeout=5.0)")  # fmt: skip
    listing = "from executors.beep import Beep\nfrom rules.y import y\nEXECUTORS = [Beep()]\nRULES = [y]"
    files = {
        "executors__beep": deed,
        "shared": "LIMIT = 7",
        "rules__y": "from shared import LIMIT\ny = LIMIT",
    }
    async with at_work(engine(tmp_path, listing, **files)) as scene:
        assert (await scene.act()).data == {"limit": 7}


HELD = {
    "what it is given": ("WATCHERS = [Queue(LIMIT)]", "watcher:queue"),
    "what it is": ("WATCHERS = [LIMIT]", "watcher:rules.x.LIMIT"),
    "what it is made by": ("WATCHERS = [LIMIT(3)]", "watcher:rules.x.LIMIT"),
}


@pytest.mark.parametrize("name", HELD)
async def test_a_watcher_that_holds_something_of_rules_is_left_out_and_told(
    name: str, tmp_path: Path
) -> None:
    listing, whose = HELD[name]
    own = HEAD + FINE.replace(
        "(self):\n        self.nudge", "(self, limit=3):\n        self.limit = limit\n        self.nudge"
    )
    revision = engine(tmp_path, "from rules.x import LIMIT\n" + listing, watchers__queue=own)
    async with at_work(revision) as scene:
        (fault,) = scene.hands.faults
        assert fault.whose == whose
        assert "rules.x.LIMIT is not run here" in fault.message


USES = {
    "a comparison": "3 > LIMIT",
    "a sum": "3 + LIMIT",
    "a difference": "LIMIT - 3",
    "a call": "LIMIT()",
    "a method": "LIMIT.items()",
    "a question": "1 if LIMIT else 2",
    "a text": "f'{LIMIT}'",
    "another text": "str(LIMIT)",
    "a look at each": "[x for x in LIMIT]",
    "a copy of all": "[*LIMIT]",
    "its size": "len(LIMIT)",
    "being equal": "LIMIT == 3",
    "being in": "3 in LIMIT",
    "a part": "LIMIT['a']",
    "merging": "{**LIMIT}",
    "a number": "int(LIMIT)",
    "a kind": "isinstance(3, LIMIT)",
    "a class": "class Y(LIMIT): ...",
    "a block": "with LIMIT: ...",
    "a copy": "copy.deepcopy(LIMIT)",
    "pickling": "pickle.dumps(LIMIT)",
    "a path": "open(LIMIT)",
    "a template": "'%s' % LIMIT",
}
USING = f"""
said = {{}}
for name, use in {USES!r}.items():
    try:
        exec(use, {{'LIMIT': rules.x.LIMIT, 'copy': copy, 'pickle': pickle}})
        said[name] = 'done'
    except BaseException as error:
        said[name] = repr(error)
return Reading(said)
"""


async def test_whatever_is_done_with_it_is_refused(tmp_path: Path) -> None:
    own = HEAD + "import copy, importlib, pickle\nrules = importlib.import_module('rules')\n"
    revision = engine(tmp_path, "import rules.x", watchers__queue=own + watcher(USING, timeout=5.0))
    async with at_work(revision) as scene:
        said = await scene.look()
    assert said.keys() == USES.keys()
    assert {name: words for name, words in said.items() if "NotRunHere('rules.x.LIMIT" not in words} == {}


async def test_a_use_is_an_error_with_its_line(tmp_path: Path) -> None:
    own = HEAD + "import importlib\nrules = importlib.import_module('rules')\n"
    look = watcher("await rules.x.LIMIT\nreturn Reading({})", timeout=5.0)
    async with at_work(engine(tmp_path, "import rules.x", watchers__queue=own + look)) as scene:
        with pytest.raises(PulseError) as caught:
            await scene.look()
    assert "NotRunHere: rules.x.LIMIT is not run here" in str(caught.value)
    assert "(watchers/queue.py:" in str(caught.value)


def test_something_that_stands_in_has_names_and_no_more() -> None:
    one = Standin("rules.x.made")
    assert (one.__name__, one.__qualname__, one.__module__) == ("made", "made", "rules.x")
    assert repr(one.inner) == "<rules.x.made.inner, which is not run here>"
    assert not hasattr(one, "__wrapped__")
    assert not hasattr(one, "__dataclass_fields__")
    with pytest.raises(NotRunHere, match=r"rules\.x\.made is not run here"):
        one()
