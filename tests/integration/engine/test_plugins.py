"""Plugins: found without being imported, listed, and folded between the survival rules and the engine's."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from pulse_adapters.rule_host.plugins import GROUP, entries
from pulse_adapters.sqlite.vitals_reader import SqliteVitalsReader
from pulse_core.composition import ALL_RULES
from pulse_core.model.tick import LayerOutcome
from pulse_core.rules.onion import rule_name
from tests.integration.cli.cli_home import UPULSE, CliHome, Said, eventually
from tests.integration.engine.engine_home import CALM, WISHING, new_home
from tests.integration.engine.plugin_site import install, made
from tests.long_form import sampled

INNERMOST = rule_name(ALL_RULES[-1])
"""Of the package's own rules."""
BROUGHT = """
from pulse_core import Projection
from pulse_core import Plugin
async def one(prev, curr, inner): return await inner(prev, curr)
async def two(prev, curr, inner): return await inner(prev, curr)
class Sense: name = "sense"
class Hand: action = "wave"
print("what a plugin prints is no answer")
PLUGIN = Plugin("full", [one, two], {"sum": Projection(0, lambda value, event: value)}, [Sense()], [Hand()])
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for packages, where Python looks for them."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(site))
    return site


def upulse(*words: str) -> Said:
    done = subprocess.run([*UPULSE, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return Said(done.returncode, done.stdout, done.stderr)


def test_where_no_metadata_names_pulse_no_package_is_asked(site: Path) -> None:
    (site / "other-1.dist-info").mkdir()
    (site / "other-1.dist-info" / "entry_points.txt").write_text("[console_scripts]\nother = other:main\n")
    code = (
        "import sys, upulse_cli.blocked_imports; from pulse_adapters.rule_host.plugins import plugin_entries;"
        "print(plugin_entries(), 'importlib.metadata' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout == "{} False\n"


def test_plugins_are_listed_with_their_version_and_what_they_bring(site: Path) -> None:
    install(site)
    (found,) = upulse("plugins", "--json").json
    assert (found["name"], found["package"], found["version"]) == ("sample", "pulse-sample", "1.2.3")
    assert found["rules"] == ["sample_counts"]
    assert found["error"] is None
    assert "rules: sample_counts" in upulse("plugins").out


def test_everything_that_a_plugin_brings_is_named(site: Path, tmp_path: Path) -> None:
    install(site, made(tmp_path, "full", BROUGHT))
    (found,) = upulse("plugins", "--json").json
    assert found["rules"] == ["one", "two"]
    assert (found["projections"], found["watchers"], found["executors"]) == (["sum"], ["sense"], ["wave"])


@pytest.mark.parametrize(
    ("module", "words"),
    sampled(
        [
            ("PLUGIN = 1 / 0", "ZeroDivisionError"),
            ("import os\nos._exit(7)", "ended with status 7"),
            ("raise SystemExit(3)", "ended with status 3"),
            ("x = 1", "PLUGIN"),
            ("x = [bytes(1 << 24) for _ in range(320)]", "MemoryError"),  # 5 GiB without pages
        ],
        3,
    ),
)
def test_a_plugin_that_can_not_be_imported_is_listed_with_the_reason(
    site: Path, tmp_path: Path, module: str, words: str
) -> None:
    install(site, made(tmp_path, "broken", module))
    (found,) = upulse("plugins", "--json").json
    assert words in found["error"]
    assert found["rules"] == []


def test_without_plugins_it_is_said_what_one_is(site: Path) -> None:
    said = upulse("plugins")
    assert said.out == ""
    assert "pulse.plugins" in said.err


def test_what_is_found_is_what_python_itself_finds(site: Path, tmp_path: Path) -> None:
    install(site)
    install(site, made(tmp_path, "other", ""))
    code = "import json, sys; from importlib.metadata import entry_points as all_of; "
    code += "print(json.dumps(sorted((one.name, one.value) for one in all_of(group=sys.argv[1]))))"
    known = subprocess.run(
        [sys.executable, "-c", code, GROUP], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    found = [(entry.name, entry.value) for entry in entries([str(site)])]
    assert found == [("other", "other:PLUGIN"), ("sample", "pulse_sample.plugin:PLUGIN")]
    assert [tuple(pair) for pair in json.loads(known)] == found
    assert not entry_points(group=GROUP)  # this process has not got that folder


ODD: Mapping[str, bytes] = {
    "no_value": b"[pulse.plugins]\nfoo\n",
    "no_text": b"[pulse.plugins]\n\xff = \xfe:x\n",
    "no_name": b"[pulse.plugins]\n= :x\n[[[\n]\n[pulse.plugins]\n__main__=__main__:x",
    "much": b"[pulse.plugins]\n" + b"x" * 2_000_000,
}


@pytest.fixture
def odd_site(site: Path) -> Path:
    """Packages whose metadata are not as they should be, and one whose are."""
    install(site)
    for name, content in ODD.items():
        (site / f"{name}-1.dist-info").mkdir()
        (site / f"{name}-1.dist-info" / "entry_points.txt").write_bytes(content)
    (site / "no_text-1.dist-info" / "METADATA").write_bytes(b"Name: \xff\nVersion: 2\n\n\xff")
    (site / "pipe.egg-info").mkdir()
    os.mkfifo(site / "pipe.egg-info" / "entry_points.txt")
    os.mkfifo(site / "pipe.egg-info" / "PKG-INFO")
    (site / "a_file.egg-info").touch()
    return site


def test_whatever_stands_in_metadata_the_other_plugins_are_found(odd_site: Path) -> None:
    found = upulse("plugins", "--json").json
    assert {one["package"]: bool(one["error"]) for one in found} == {
        "pulse-sample": False, "no_value": True, "\ufffd": True, "no_name": True, "much": True, "pipe": True
    }  # fmt: skip
    assert "no plain file" in next(one["error"] for one in found if one["package"] == "pipe")


@pytest.mark.parametrize(("others", "faulty"), sampled([(3_000, []), (2, ["ending:x"])], 2))
def test_any_number_is_listed_at_once_and_who_ends_that_process_is_found(
    site: Path, others: int, faulty: list[str]
) -> None:
    beside = site / "many-1.dist-info"
    beside.mkdir()
    lines = [f"p{number} = {value}" for number, value in enumerate([*["os:getpid"] * others, *faulty])]
    beside.joinpath("entry_points.txt").write_text("\n".join(["[pulse.plugins]", *lines]))
    (site / "ending.py").write_text("import os; os._exit(7)")
    found = upulse("plugins", "--json").json
    assert [one["value"] for one in found if one["error"]] == faulty
    assert len(found) == others + len(faulty)


def test_a_plugins_rules_stand_inside_survivals_and_around_the_engines(site: Path, tmp_path: Path) -> None:
    install(site)
    told = new_home(tmp_path / "home", WISHING).as_process("explain", "--json").json
    assert [layer["rule"] for layer in told["rules"]][-3:] == [INNERMOST, "sample_counts", "wishing"]
    assert told["rules"][-2]["notes"] == ["1 effects from inside"]


def test_a_daemon_folds_a_plugins_rules_whatever_stands_in_the_metadata_of_others(
    odd_site: Path, tmp_path: Path
) -> None:
    home = new_home(tmp_path / "home", CALM, "[daemon]\ntick_ms = 200\n")
    home.upulse("daemon", "start")
    try:
        layers = eventually(lambda: of_a_whole_tick(home), "a tick with the rules inside")
    finally:
        os.kill(home.status()["daemon"]["pid"], signal.SIGKILL)
    assert [layer.rule for layer in layers][:3] == ["calm", "sample_counts", INNERMOST]
    assert layers[1].notes == ("0 effects from inside",)


def of_a_whole_tick(home: CliHome) -> Sequence[LayerOutcome]:
    """The layers, innermost first, of the newest tick that a rule host has folded too."""
    with SqliteVitalsReader(home.path) as vitals:
        wholes = (tick.layers for tick in vitals.ticks(10) if tick.layers[0].rule == "calm")
        return next(wholes, ())
