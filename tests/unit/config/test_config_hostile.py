"""Whatever lies in the place of the settings: settings, or faults with a line; nothing else is ever raised."""

import asyncio
import math
import os
import random
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from pulse_adapters.config.errors import LONGEST, MOST_FAULTS
from pulse_adapters.config.file import load, load_to_start
from pulse_adapters.config.toml_file import LARGEST
from pulse_core.daemon import CurrentSettings
from pulse_core.model.errors import SettingsRefused
from pulse_core.model.kinds import ReloadRequested, SettingsRejected
from pulse_core.settings.settings import Settings
from tests.events import event
from tests.long_form import sample, sampled

GOOD = b"""# What is guarded
[daemon]
tick_ms = 5_000
stop_grace = "10s"
[resources]
memory = { raise = 0.9, clear = 0.8, for = "30s" }
clean = ["~/.cache/agent"]
[[resources.disk]]
path = "/srv"
[network]
http = ["http://127.0.0.1:18080/"]
[[llm]]
url = "http://127.0.0.1:4000/a"
restart = "a"
[[log]]
path = "/var/log/a.log"
match = ["ERR(OR)?"]
[[silence]]
match = "restart-process:a"
at = "02:30"
for = "1h"
days = ["sat"]
[[process]]
name = "a"
start = ["sleep", "5"]
env = { A = "1", "b c" = '''x''' }
restart = { max = 5, within = "10m" }
[[process]]
name = "b"
depends_on = [
  "a",  # first
]
command = [\"\"\"true\"\"\"]
tcp = "127.0.0.1:80"
"""
A_PROCESS = '[[process]]\nname = "a{0}"\nstart = ["x"]\n'
ODDITIES = {
    "digits": "[daemon]\ntick_ms = " + "9" * 5_000,
    "hexadecimal digits": "[daemon]\ntick_ms = 0x" + "9" * 5_000,
    "digits behind a point": "[resources.memory]\nraise = 0." + "9" * 5_000,
    "digits in a duration": '[daemon]\nstop_grace = "' + "9" * 5_000 + 'd"',
    "digits in a port": A_PROCESS + 'tcp = "a:' + "9" * 5_000 + '"',
    "NUL in a user": A_PROCESS + 'user = "a\\u0000"',
    "NUL in a group": A_PROCESS + 'group = "a\\u0000"',
    "NUL in a host": A_PROCESS + 'tcp = "a\\u0000:1"',
    "infinite": "[resources.memory]\nraise = 1e999",
    "no number": "[resources.memory]\nraise = nan",
    "parts of a key": ".".join("a" * 1_000) + " = 1",
    "parts of a header": "[daemon]\n[" + ".".join("a" * 1_000) + "]\nx = 1",
    "a key as long as the file": ".".join("a" * 100_000) + " = 1",
    "lists": "a = " + "[" * 250 + "]" * 250,
    "lists as deep as Python": "a = " + "[" * 100_000,
    "inline tables": "a = " + "{a = " * 300 + "1" + "}" * 300,
    "tables and keys": "a.b.c.d.e.f.g = " + "{a.b.c.d.e.f.g = " * 7 + "1" + "}" * 7,
    "half a character": 'a = "\\ud800"',
    "NUL": "a = '\0'",
    "NUL, escaped": A_PROCESS + 'cwd = "\\u0000"',
    "a date": "[daemon]\ntick_ms = 9999-12-31T23:59:59.999999999999-23:59",
    "no date": "[daemon]\ntick_ms = 9999-99-99T99:99:99+99:99",
    "one name for thousands": A_PROCESS * 5_000,
    "thousands who depend on strangers": "".join(
        A_PROCESS.format(n) + f'depends_on = ["q{n}"]\n' for n in range(3_000)
    ),
    "a circle for each": "".join(
        A_PROCESS.format(n) + f'depends_on = ["a{n ^ 1}"]\n' for n in range(3_000)
    ),
    "thousands of unknown keys": "\n".join(f"k{n} = 1" for n in range(20_000)),
    "thousands of faults in pairs": (A_PROCESS + 'pid_file = 5\ntcp = "x"\nmatch = 1\n') * 2_000,
    "thousands of paths": "[watch]\ndisks = [" + ", ".join(f"'/{n}'" for n in range(20_000)) + "]",
    "texts that never end": 'x\\"""\n' * 40_000,
    "texts that never end, in a value": 'x = """' + 'x\\"""\n' * 40_000,
    "a long unknown key": f'"{"x" * 200_000}" = 1',
    "a long pattern": A_PROCESS + "match = '" + "(" * 200_000 + "'",
    "brackets": "a = [" + "[]," * 80_000 + "]",
    "a comment": "#" * (LARGEST - 1),
    "too long": "#" * (LARGEST + 1),
}  # fmt: skip
ALLOWED = {"a comment"}
SPLICES = [
    b"9" * 4_301, b".a" * 500, b"[" * 200, b"{a=" * 200, b"\xff", b"\xed\xa0\x80", b"\0", b"1e999", b"nan", b"\\ud800",
    b'"', b'"""', b"'''", b"]", b"}", b"=", b"\n", b"\r", b"9999-12-31", b"00:00", b"[[process]]", b"[process.a.b]", b"#",
    b"0x" + b"f" * 4_000, b"-", b"true", "\u2028\u202e\U0001f600".encode(), b"[[daemon]]", b'name = "b"', b"restart = {}",
    b"\\", b",",
]  # fmt: skip


def mutated(dice: random.Random) -> bytes:
    """The good file, changed in a few places: bytes and lines altered, taken out, doubled, moved, or put in."""
    text = bytearray(GOOD)
    for _ in range(dice.choice((1, 1, 2, 4, 8))):
        place, end = sorted(dice.randrange(len(text) + 1) for _ in range(2))
        end = min(end, place + dice.choice((1, 8, 80)))
        match dice.randrange(5):
            case 0:
                text[place:place] = dice.choice(SPLICES)
            case 1:
                text[place:end] = dice.choice(SPLICES)
            case 2:
                text[place:end] = b""
            case 3:
                text[place:place] = text[place:end] * dice.choice((1, 2, 50))
            case 4:
                text[place:end] = bytes(dice.randrange(256) for _ in range(end - place))
    return bytes(text)


def faults_of(path: Path) -> tuple[str, ...]:
    """The faults of this file, none if it is good; each is whole, and there are not too many."""
    try:
        settings = load(path)
    except SettingsRefused as error:
        refused = error
    else:
        assert all(map(math.isfinite, numbers(settings.model_dump())))
        assert settings.digest
        return ()
    assert 0 < len(refused.faults) <= MOST_FAULTS + 1
    for fault in refused.faults:
        assert re.match(rf"{re.escape(str(path))}:[1-9]\d*: .", fault), fault
        assert len(fault) < len(str(path)) + LONGEST + 20
        fault.encode()
    return refused.faults


def numbers(value: object) -> Iterator[float]:
    if isinstance(value, dict | tuple):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from numbers(inner)
    elif isinstance(value, float):
        yield value


@pytest.mark.parametrize("oddity", sampled(ODDITIES, 2))
def test_an_odd_file_has_faults_with_lines_and_few(tmp_path: Path, oddity: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(ODDITIES[oddity].replace("{0}", ""))
    assert bool(faults_of(path)) is (oddity not in ALLOWED)


def test_a_fault_of_the_structure_has_the_line_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    for odd in ("x = " + "9" * 5_000, "x = " + "[" * 9, ".".join("a" * 9) + " = 1"):
        path.write_text('# "\n[daemon]\ntext = """\n[[[[[[[[[[\n"""\n' + odd)
        (fault,) = faults_of(path)
        assert fault.startswith(f"{path}:6: no usable TOML: ")


def test_many_faults_are_the_first_ones_and_a_count(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("\n".join(f"k{n} = 1" for n in range(1_000)))
    faults = faults_of(path)
    assert [fault.split(":")[1] for fault in faults[:-1]] == [str(n + 1) for n in range(MOST_FAULTS)]
    assert faults[-1].endswith(": and 950 more faults")


def test_a_good_file_stays_good(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(GOOD)
    assert faults_of(path) == ()
    path.write_bytes(GOOD.replace(b"\n", b"\r\n"))
    assert faults_of(path) == ()


@pytest.mark.parametrize("seed", range(4))
def test_a_mutated_file_is_settings_or_faults(tmp_path: Path, seed: int) -> None:
    dice, path = random.Random(seed), tmp_path / "config.toml"
    refused = 0
    for _ in range(sample(150, 25_000)):
        path.write_bytes(mutated(dice))
        refused += bool(faults_of(path))
        if not refused % 50:
            with suppress(SettingsRefused):
                load_to_start(path)
    assert refused > 50


def in_its_place(path: Path, what: str) -> None:
    """Put something else where a file was."""
    path.unlink(missing_ok=True)
    match what:
        case "a directory":
            path.mkdir()
        case "a pipe":
            os.mkfifo(path)
        case "a device":
            path.symlink_to("/dev/zero")
        case "a link to itself":
            path.symlink_to(path)
        case "a large file with a hole":
            with path.open("wb") as file:
                file.truncate(1 << 30)
        case "no home":
            path.parent.rmdir()


@pytest.mark.parametrize(
    "what",
    [
        "nothing",
        "a directory",
        "a pipe",
        "a device",
        "a link to itself",
        "a large file with a hole",
        "no home",
    ],
)
async def test_old_settings_stay_in_force_whatever_lies_in_the_place_of_new_ones(
    tmp_path: Path, what: str
) -> None:
    path = tmp_path / "home" / "config.toml"
    path.parent.mkdir()
    old = Settings()
    settings = CurrentSettings(old, lambda: asyncio.to_thread(load, path))
    in_its_place(path, what)
    answer = (await settings.reload([event(1, ReloadRequested())]))[0].payload
    assert isinstance(answer, SettingsRejected)
    assert len(answer.faults) == 1
    assert settings() is old


def test_a_file_that_is_replaced_while_it_is_read_is_settings_or_faults(tmp_path: Path) -> None:
    path, other = tmp_path / "config.toml", tmp_path / "other"
    stop = Event()

    def replace() -> None:
        while not stop.is_set():
            for content in (GOOD, GOOD[:100] + b"\xff", b""):
                other.write_bytes(content)
                other.replace(path)
            path.unlink()

    replacing = Thread(target=replace)
    replacing.start()
    try:
        for _ in range(sample(50, 2_000)):
            faults_of(path)
    finally:
        stop.set()
        replacing.join()


@pytest.mark.parametrize(("entries", "is_good"), [(256, True), (257, False)])
def test_no_list_is_so_long_that_looking_at_each_would_stall_a_tick(
    tmp_path: Path, entries: int, is_good: bool
) -> None:
    path = tmp_path / "config.toml"
    path.write_text("# much\n" + '[[silence]]\nmatch = "*"\nat = "00:00"\nfor = "1h"\n' * entries)
    expected = () if is_good else (f"{path}:2: silence: there are 257 of them; at most 256 make sense",)
    assert faults_of(path) == expected
    path.write_text(f"[watch]\ndisks = {[f'/{n}' for n in range(entries)]}\n")
    assert bool(faults_of(path)) is not is_good
