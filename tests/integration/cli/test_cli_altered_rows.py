"""A bit of a row has flipped on the disk: what is read from files says so, and tells the rest."""

from pathlib import Path

import pytest

from tests.integration.cli.cli_home import ALLOW, CliHome


def flip(home: Path, old: bytes, new: bytes) -> None:
    """Alter these bytes of the file, where they stand first."""
    path = home / "events.db"
    whole = path.read_bytes()
    assert old in whole
    path.write_bytes(whole.replace(old, new, 1))


@pytest.fixture
def told(quiet: CliHome) -> CliHome:
    """A home with three effects and no daemon."""
    quiet.configure(ALLOW)
    for key in ("first", "second", "third"):
        quiet.upulse("effect", "add", "run-command", "--key", key, "--param", 'argv=["true"]')
    return quiet


ALTERED = [
    (b'"key":"second"', b'"key":"second\x02'),
    (b'"second"', b'"sec\xefnd"'),
    (b'{"action"', b'\xfb"action"'),
]


@pytest.mark.parametrize(("old", "new"), ALTERED)
def test_a_row_that_cannot_be_read_is_said_and_the_others_are_told(
    told: CliHome, old: bytes, new: bytes
) -> None:
    rows = told.upulse("events", "--json").lines
    flip(told.path, old, new)
    after = told.upulse("events", "--json").lines
    assert [row["seq"] for row in after] == [row["seq"] for row in rows]
    altered = [row for row, before in zip(after, rows, strict=True) if row["data"] != before["data"]]
    (said,) = [row["data"]["$damaged"] for row in altered]
    assert "upulse verify" in said
    for words in (("events",), ("effect", "list", "--all"), ("status",)):
        assert "damaged" in told.upulse(*words).out.lower(), words
    assert "DAMAGED LOG" in told.upulse("process", "list").err
    assert "the log is damaged" in told.upulse("explain").out
    assert "damaged: " in told.upulse("why", altered[0]["id"]).out
    for words in (("incidents",), ("why",), ("state",)):
        told.upulse(*words)


def test_a_row_that_lost_a_field_is_told_as_it_is(told: CliHome) -> None:
    flip(told.path, b'"key":"second"', b'"kex":"second"')
    assert "second" in told.upulse("events").out
    told.upulse("status")
    told.upulse("why")
    told.upulse("incidents")
