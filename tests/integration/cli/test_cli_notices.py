"""A real daemon tells people outside: through a child, and without becoming any bigger."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli.cli_home import CliHome, eventually
from tests.postbox import Postbox, fail, postbox

NOTIFY = '[notify]\nurls = ["env:PULSE_TEST_ONE", "env:PULSE_TEST_TWO"]\ngroup = "200ms"\n'


@pytest.fixture
def box() -> Iterator[Postbox]:
    with postbox() as made:
        yield made


@pytest.fixture
def telling(tmp_path: Path, box: Postbox, monkeypatch: pytest.MonkeyPatch) -> Iterator[CliHome]:
    """A home whose daemon runs, knows the first of two addresses, and guards nothing."""
    monkeypatch.setenv("PULSE_TEST_ONE", box.url("one"))
    monkeypatch.delenv("PULSE_TEST_TWO", raising=False)
    home = CliHome(tmp_path / "home")
    home.upulse("init", "--no-engine")
    home.configure(NOTIFY)
    home.start_daemon()
    try:
        yield home
    finally:
        home.end_everything()


def told(home: CliHome, name: str) -> str:
    return home.upulse("effect", "add", "notify", "--key", name, "--param", f"title={name}").out.strip()


def shown(home: CliHome, id_: str) -> dict[str, Any]:
    return dict(home.upulse("effect", "show", id_, "--json").json)


def logged(home: CliHome) -> set[str]:
    """Those of the titles that the daemon has told in its own log."""
    said = home.upulse("daemon", "logs", "-n", "200").out
    return {title for title in ("disk full", "gateway down") if title in said}


def test_it_is_said_why_a_notice_waits(telling: CliHome) -> None:
    network = '[network]\nhttp = ["http://127.0.0.1:9/"]\ninterval = "100ms"\n'
    telling.configure('[notify]\nurls = ["json://far.example"]\n', network)
    telling.upulse("daemon", "reload")
    eventually(lambda: telling.status()["notices"]["held_back"], "the network to be found down")
    id_ = told(telling, "gateway down")
    why = "waits for the network, which is down, first seen "
    assert telling.upulse("effect", "show", id_, "--json").json["held_back"].startswith(why)
    assert why in telling.upulse("effect", "show", id_).out
    assert f"2 not delivered: {why.replace('waits', 'wait')}" in telling.upulse("status").out
    telling.upulse("daemon", "stop")
    assert why.replace("waits", "wait") in telling.upulse("status").out


def test_a_trial_notice_says_whether_it_arrived(telling: CliHome, box: Postbox) -> None:
    for _ in range(2):  # an address that failed is tried again at once
        said = telling.upulse("notify", "test", code=1).err
        assert "it arrived at env:PULSE_TEST_ONE; not at env:PULSE_TEST_TWO: its variable is not set" in said
    dead = f'[notify]\nurls = ["{box.url("fails")}", "{box.url("fine")}"]\ngroup = "0s"\n'
    box.manners["fails"] = fail
    telling.configure(dead)
    telling.upulse("daemon", "reload")
    for _ in range(2):
        said = " ".join(telling.upulse("notify", "test", code=1).err.split())
        assert re.search(r"it arrived at json://\*{3}#\w{4}; not at json://\*{3}#\w{4}: .*500", said), said
    telling.configure('[notify]\nurls = ["env:PULSE_TEST_ONE"]\ngroup = "0s"\n')
    telling.upulse("daemon", "reload")
    assert "Sent: it arrived at env:PULSE_TEST_ONE." in telling.upulse("notify", "test").err
    telling.configure('[[notify_route]]\nurls = ["env:PULSE_TEST_ONE"]\nmatch = "flapping:*"\n')
    telling.upulse("daemon", "reload")
    said = telling.upulse("notify", "test", code=1).err
    assert "it arrived nowhere: logged: no route takes it" in said
    telling.configure("# no addresses\n")
    telling.upulse("daemon", "reload")
    assert "[notify] has no urls" in telling.upulse("notify", "test", code=1).err
    id_ = told(telling, "nowhere to go")
    outcome = eventually(lambda: shown(telling, id_)["outcome"], "its outcome")
    assert outcome["result"] == {"only": "logged: [notify] has no urls"}
    checks = telling.upulse("doctor", "--json", code=None).out
    assert "reach nobody outside" in checks


def test_notices_leave_together_and_the_daemon_stays_small(
    telling: CliHome, box: Postbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fault,) = eventually(
        lambda: telling.upulse("events", "--kind", "error", "--json").lines, "the missing variable to be told"
    )
    assert fault["subject"] == "notify"
    assert fault["data"]["message"].startswith("no notices go to env:PULSE_TEST_TWO: ")
    titles = {"disk full", "gateway down"}
    ids = [told(telling, name) for name in sorted(titles)]
    assert eventually(lambda: box.posts, "the first message")
    eventually(lambda: titles <= logged(telling), "the titles to be logged")

    eventually(
        lambda: {shown(telling, id_)["state"] for id_ in ids} == {"retrying"}, "the failures to be recorded"
    )
    for id_ in ids:
        last = shown(telling, id_)["events"][-1]
        assert last["data"]["error"] == "env:PULSE_TEST_TWO: its variable is not set"

    telling.upulse("daemon", "stop")
    monkeypatch.setenv("PULSE_TEST_TWO", box.url("two"))
    telling.start_daemon()
    third = told(telling, "all is well")
    eventually(
        lambda: telling.upulse("effect", "show", third, "--json").json["state"] == "acked",
        "the third notice to be everywhere",
    )
    assert {path for path, _ in box.posts} == {"one", "two"}
    pid = telling.status()["daemon"]["pid"]
    loaded = Path(f"/proc/{pid}/maps").read_text()
    assert "_ssl." not in loaded
    assert "apprise" not in loaded
    assert len(telling.upulse("events", "--kind", "error", "--json").lines) == 1
