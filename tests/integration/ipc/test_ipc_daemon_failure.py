"""What a daemon leaves in its home of why it gave up, and what is read of a file in which somebody else has written."""

from pathlib import Path

import pytest

from pulse_adapters.ipc.daemon_failure import read_failure, record_failure
from pulse_core.model.home_status import FailedDaemon
from pulse_core.model.moment import iso


def test_who_gives_up_says_why_until_another_one_begins(tmp_path: Path) -> None:
    path = tmp_path / "failure"
    with pytest.raises(ValueError, match="taken"), record_failure(path, str):
        raise ValueError("the port is taken")
    found = read_failure(path)
    assert found is not None
    assert found.why == "the port is taken"
    assert 0 < found.began <= found.at
    with record_failure(path, str):
        assert read_failure(path) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"began": -1, "at": -100000000000000000, "why": "x\\ud800"}', FailedDaemon(0, 0, "x\\ud800")),
        ('{"began": 1, "at": 1e400, "why": ""}', None),
        ('{"began": 1, "at": [], "why": ""}', None),
        ("[" * 60_000, None),
        ("", None),
    ],
    ids=["far ago", "endless", "list", "deep", "empty"],
)
def test_whatever_the_file_says_status_can_tell_it(
    tmp_path: Path, text: str, found: FailedDaemon | None
) -> None:
    path = tmp_path / "failure"
    path.write_text(text)
    assert read_failure(path) == found
    if found:
        assert iso(found.at)
        assert found.why.encode()
