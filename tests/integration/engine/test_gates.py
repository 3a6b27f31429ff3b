"""The gates decide how strict they are, whatever staging says of it; and none is passed without a look."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.sandbox.code_checks import SandboxedChecks, state_of_types
from pulse_adapters.workers.host_groups import HostGroup
from pulse_core.app.engine.candidate_checks import GATES, chosen_gates
from pulse_core.model.errors import PulseError
from pulse_core.ports.code_checks import GateFailed
from tests.integration.cli.cli_home import CliHome
from tests.integration.engine import gate_scene as gates
from tests.integration.engine.engine_home import new_home, save
from tests.integration.engine.gate_scene import another, candidate
from tests.long_form import sampled
from tests.small_disk import small_disk

UNTYPED = "def twice(x):\n    return x * 2\n"
WRONG = "ONE: int = 'one'\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """One for all, since mypy is slow without what it has kept."""
    return candidate(tmp_path_factory.mktemp("gates")).home


@pytest.fixture
def written(home: Home) -> Iterator[dict[str, str]]:
    """Files of staging, which are gone after the test."""
    files: dict[str, str] = {}
    yield files
    for name in files:
        (home.path / "staging" / name).unlink(missing_ok=True)


LAX = {
    "mypy.ini": "[mypy]\nignore_errors = True\nplugins = plug.py\n",
    ".mypy.ini": "[mypy]\nignore_errors = True\nplugins = plug.py\n",
    "setup.cfg": "[mypy]\nignore_errors = True\nplugins = plug.py\n",
}


def test_the_engine_that_is_shipped_passes(tmp_path: Path) -> None:
    shipped = candidate(tmp_path, left_out="")
    assert gates.types(shipped) == ""
    assert re.fullmatch(r"[1-9]\d* passed", gates.tests(shipped))  # and none failed or was left out


def test_no_configuration_in_staging_is_heard_by_the_types_gate(home: Home, written: dict[str, str]) -> None:
    plug = f"open({str(home.path.parent / 'plugged')!r}, 'w')\nraise SystemExit('the plugin runs')\n"
    written |= {**LAX, "plug.py": plug, "rules/own.py": UNTYPED}
    tried = another(home, written)
    with pytest.raises(GateFailed, match=r"rules/own.py:1: error: Function is missing a type annotation"):
        gates.types(tried)
    assert not (home.path.parent / "plugged").exists()


def test_nor_is_that_of_its_pyproject(tmp_path: Path) -> None:
    lax = '[tool.mypy]\nignore_errors = true\nplugins = ["plug.py"]\nfiles = ["engine.py"]\n'
    with pytest.raises(GateFailed, match=r"rules/own.py:1: error: Incompatible types"):
        gates.types(candidate(tmp_path, {"pyproject.toml": lax, "plug.py": "1 / 0\n", "rules/own.py": WRONG}))


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("# mypy: ignore-errors\n", "rules/own.py:1: '# mypy: ignore-errors' is for a whole file"),
        ("# type: ignore\n", "rules/own.py:1: '# type: ignore' is for a whole file"),
        ("\n\n# mypy: disable-error-code=assignment\n", "rules/own.py:3: "),
    ],
)
def test_no_comment_excuses_a_whole_file(home: Home, written: dict[str, str], line: str, where: str) -> None:
    written["rules/own.py"] = line + WRONG
    with pytest.raises(GateFailed, match=where):
        gates.types(another(home, written))


def test_nor_is_a_file_hidden_by_its_own_stub(home: Home, written: dict[str, str]) -> None:
    written |= {"rules/own.py": WRONG, "rules/own.pyi": "ONE: int\n"}
    with pytest.raises(GateFailed, match=r"own.pyi:1: it hides own.py"):
        gates.types(another(home, written))


def test_what_mypy_has_kept_does_not_stand_for_what_is_new(home: Home, written: dict[str, str]) -> None:
    """Two candidates whose files are of one size, laid out at the same time."""
    os.mkfifo(home.path / "cache" / "mypy")  # where a gate left what the next one began with
    written["rules/own.py"] = "ONE: int = 1234\n"
    assert gates.types(another(home, written)) == ""
    written["rules/own.py"] = "ONE: int = '12'\n"
    with pytest.raises(GateFailed, match="Incompatible types"):
        gates.types(another(home, written))


TEST = "def test_one():\n    assert True\n"


@pytest.mark.parametrize(
    ("files", "words"),
    sampled(
        [
            ({"pytest.ini": "[pytest]\naddopts = --collect-only\n"}, "no test has passed: none was run"),
            ({"pytest.ini": "[pytest]\naddopts = -k xyzzy\n"}, "no test has passed: 2 deselected"),
            ({"conftest.py": "collect_ignore_glob = ['*']\n"}, "no test has passed: none was run"),
            ({"conftest.py": "import pytest\npytest.exit('done', 0)\n"}, "conftest"),
            (
                {"conftest.py": "def pytest_collection_modifyitems(items):\n    del items[:]\n"},
                "no test has passed: none was run",
            ),
            (
                {"conftest.py": "import pytest\n\ndef pytest_runtest_setup(item):\n    pytest.skip('no')\n"},
                "no test has passed: 2 skipped",
            ),
        ],
        3,
    ),
)
def test_tests_that_were_not_run_are_not_passed(
    home: Home, written: dict[str, str], files: dict[str, str], words: str
) -> None:
    written |= files
    with pytest.raises(GateFailed, match=words):
        gates.tests(another(home, written))


def test_what_was_run_is_told_in_one_line_however_much_is_printed(
    home: Home, written: dict[str, str]
) -> None:
    written |= {
        "tests/test_own.py": TEST
        + "\n\ndef test_two():\n    print('two')\n    import pytest\n    pytest.skip('no')\n",
        "pytest.ini": "[pytest]\naddopts = -vv -s --deselect tests/test_engine.py\n",
    }
    assert gates.tests(another(home, written)) == "1 passed, 1 skipped, 2 deselected"


def test_a_test_that_fails_is_shown(home: Home, written: dict[str, str]) -> None:
    written["tests/test_own.py"] = "def test_one():\n    assert 1 == 2\n"
    with pytest.raises(GateFailed, match="assert 1 == 2"):
        gates.tests(another(home, written))


@pytest.mark.parametrize("said", ["'\U0001f525' * 1000", r"'\udcff'"])
def test_what_a_failure_says_is_told_however_long_its_letters_are(
    home: Home, written: dict[str, str], said: str
) -> None:
    written["tests/test_own.py"] = f"def test_one():\n    raise ValueError({said})\n"
    with pytest.raises(GateFailed, match=r"^2 passed, 1 failed; tests/test_own.py::test_one: ValueError: ."):
        gates.tests(another(home, written))


FAILS = {
    "a test": (
        "tests/test_own.py",
        "from pulse_core.testing import given\n\n\ndef test_one():\n    given().after('soon')\n",
        "2 passed, 1 failed; tests/test_own.py::test_one: ValueError: 'soon' is no duration; write",
    ),
    "an import": (
        "tests/test_own.py",
        "import nowhere\n",
        "tests/test_own.py: ModuleNotFoundError: No module named 'nowhere'",
    ),
    "a hook": (
        "conftest.py",
        "def pytest_collection_modifyitems():\n    raise ValueError('no')\n",
        "pytest broke off: ValueError: no (conftest.py:2)",
    ),
    "a conftest that exits": (
        "conftest.py",
        "raise SystemExit(3)\n",
        "pytest broke off: SystemExit: 3 (conftest.py:1)",
    ),
}


@pytest.mark.parametrize("what", sampled(FAILS, 2))
def test_a_failure_is_told_in_a_sentence_and_by_the_authors_own_lines(
    home: Home, written: dict[str, str], what: str
) -> None:
    name, text, sentence = FAILS[what]
    written[name] = text
    with pytest.raises(GateFailed) as failed:
        gates.tests(another(home, written))
    first, _, rest = str(failed.value).partition("\n")
    assert first.startswith(sentence)
    assert not any(
        words in rest for words in ("pulse_core/", "pulse_adapters/", "site-packages", "importlib")
    )
    assert "INTERNALERROR" not in rest
    assert str(home.path) not in rest


def test_a_file_that_no_parser_can_bear_fails_the_first_gate(home: Home, written: dict[str, str]) -> None:
    written["rules/own.py"] = "x = " + "-" * 100_000 + "1\n"
    with pytest.raises(GateFailed, match=r"rules/own.py:1: "):
        gates.compiles(another(home, written))


def test_a_module_whose_name_is_not_utf8_is_named_by_the_first_gate(
    home: Home, written: dict[str, str]
) -> None:
    written[os.fsdecode(b"rules/odd\xff.py")] = "ONE = 1\n"
    with pytest.raises(GateFailed, match=r"^rules/odd\udcff.py has a name that is not UTF-8"):
        gates.compiles(another(home, written))


def test_one_gate_at_least_is_left_to_pass() -> None:
    assert list(chosen_gates((), {"types": "why"})) == list(GATES)
    assert list(chosen_gates(("loads",), {"types": "why"})) == ["loads"]
    with pytest.raises(PulseError, match="'types' can't be both asked for and skipped"):
        chosen_gates(("types", "loads"), {"types": "why"})
    with pytest.raises(PulseError, match="no gate would be left"):
        chosen_gates((), dict.fromkeys(GATES, "why"))


def test_a_promote_past_all_gates_is_refused_and_a_no_is_told_to_scripts(tmp_path: Path) -> None:
    home: CliHome = new_home(tmp_path / "home")
    save(home, "async def broken(prev, curr, inner):\n    return await inner(prev, curr) +\n")
    before = home.upulse("engine", "status", "--json").json
    refused = home.upulse("promote", "--gate", "types", "--skip", "types", "--why", "x", code=1)
    assert "'types' can't be both asked for and skipped" in refused.err
    said = home.upulse("promote", "--json", code=1)
    (gate,) = said.json["gates"]
    assert (gate["name"], gate["outcome"]) == ("compiles", "failed")
    assert "rules/own.py" in gate["words"]
    assert said.json["answer"] is None
    assert "compiles   failed" in said.err
    assert said.err.count("invalid syntax") == 1
    assert home.upulse("engine", "status", "--json").json["main"] == before["main"]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Of a folder that is checked in a fifth of the time that all of Pulse takes."""
    (folder := tmp_path / "checked").mkdir()
    (folder / "one.py").write_text("ONE = 1\n")
    (made := folder / "pyproject.toml").write_text("[tool.mypy]\n")
    return made


def test_a_disk_without_room_for_what_mypy_knows_is_told_beside_its_internal_error(
    tmp_path: Path, config: Path
) -> None:
    with small_disk(tmp_path / "small", "256k") as cache:
        checks = SandboxedChecks(config, lambda: cache)
        with pytest.raises(
            GateFailed, match=rf"of which it keeps what it knows in {cache}, where .* are free\n"
        ):
            checks.known_types()


def test_what_mypy_knows_is_left_to_a_gate_that_was_quicker_and_reads_it(
    tmp_path: Path, config: Path
) -> None:
    (cache := tmp_path / "cache").mkdir()
    there = cache / f"mypy-{state_of_types()}"

    def made_meanwhile(_kind: str, _memory: int) -> HostGroup:
        there.mkdir()
        (there / "read").touch()
        return HostGroup()

    checks = SandboxedChecks(config, lambda: cache, group=made_meanwhile)
    assert checks.known_types() == there
    assert (there / "read").exists()
    assert list(cache.iterdir()) == [there]
