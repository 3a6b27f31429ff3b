"""The unit file as text: what is in it, what must not be, and that every home is found again."""

import configparser
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_adapters.systemd.manager import UNIT_NAME, installed, quote, served_home, unit_text

INHERITED = ("Protect", "Private", "NoNewPrivileges", "ReadOnly", "Restrict", "SystemCall", "Capability",
             "Limit", "Nice", "OOMScoreAdjust", "Memory", "CPU", "Tasks", "UMask", "IOScheduling")  # fmt: skip


def sections(text: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # keep the case of the keys
    parser.read_string(text)
    return parser


def unit(home: Path = Path("/srv/h"), *, user: bool = False, run_as: str | None = None) -> str:
    return unit_text(home=home, python="/opt/py/bin/python", user=user, run_as=run_as)


def test_the_service_section_keeps_the_daemon_up_and_its_children_alive() -> None:
    service = sections(unit())["Service"]
    assert service["ExecStart"] == ':"/opt/py/bin/python" -m upulse_cli.serve --home "/srv/h"'
    assert service["ExecReload"] == ':"/opt/py/bin/python" -m upulse_cli daemon reload --home "/srv/h"'
    expected = {"Type": "notify", "NotifyAccess": "main", "Restart": "always", "RestartSec": "100ms",
                "WatchdogSec": "30s", "KillMode": "process", "OOMPolicy": "continue",
                "SyslogIdentifier": "upulse"}  # fmt: skip
    assert {key: service[key] for key in expected} == expected
    assert sections(unit())["Unit"]["StartLimitIntervalSec"] == "0"


@pytest.mark.parametrize("user", [False, True])
def test_nothing_in_it_is_inherited_by_what_pulse_starts(user: bool) -> None:
    keys = sections(unit(user=user))["Service"]
    assert [key for key in keys if key.startswith(INHERITED)] == []


def test_a_system_unit_waits_for_the_homes_disk_and_runs_as_its_account() -> None:
    text = sections(unit(run_as="pulse"))
    assert text["Unit"]["RequiresMountsFor"] == '"/srv/h"'
    assert text["Service"]["User"] == "pulse"
    assert text["Install"]["WantedBy"] == "multi-user.target"
    assert "User" not in sections(unit())["Service"]


def test_a_user_unit_belongs_to_its_users_manager() -> None:
    text = sections(unit(user=True, run_as="pulse"))
    assert text["Install"]["WantedBy"] == "default.target"
    assert "User" not in text["Service"]
    assert "RequiresMountsFor" not in text["Unit"]


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
def test_the_home_is_found_again_whatever_its_name(name: str) -> None:
    home = Path("/srv") / name.strip("/")
    assert served_home(unit(home)) == home


def test_quoting_leaves_systemd_nothing_to_interpret() -> None:
    assert quote('a "b" \\c 5%h\n') == '"a \\"b\\" \\\\c 5%%h\\n"'


@pytest.mark.parametrize("text", ["", "[Service]\nExecStart=/usr/bin/true\n"])
def test_a_strangers_unit_serves_no_home(text: str) -> None:
    assert served_home(text) is None


def test_an_installed_user_unit_is_found_by_its_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    home = tmp_path / "home"
    path = tmp_path / "systemd" / "user" / UNIT_NAME
    assert installed(home) is None
    path.parent.mkdir(parents=True)
    path.write_text(unit(home, user=True))
    found = installed(home)
    assert found is not None
    assert (found.path, found.user, found.home) == (path, True, home)
    assert installed(tmp_path / "another") is None


@pytest.mark.parametrize("user", [False, True])
def test_systemd_itself_finds_no_fault_with_it(tmp_path: Path, user: bool) -> None:
    path = tmp_path / UNIT_NAME
    path.write_text(unit_text(home=tmp_path / "a 5% home", python="/bin/true", user=user, run_as=None))
    manager = "--user" if user else "--system"
    command = ["systemd-analyze", "verify", manager, "--man=no", "--recursive-errors=no", str(path)]
    runtime = os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)}
    try:
        done = subprocess.run(command, env=runtime, capture_output=True, text=True, check=False, timeout=60)
    except FileNotFoundError:
        pytest.skip("there is no systemd-analyze here")
    # Before 254 systemd passes over it, says so, and exits with 1.
    faults = [line for line in done.stderr.splitlines() if "'DelegateSubgroup' in section" not in line]
    assert (bool(done.returncode), faults) == (bool(done.stderr), [])
