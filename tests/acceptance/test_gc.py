"""Taking away what nothing names, while a real daemon stores what is about to be named."""

import hashlib
import os
import threading
import time
from pathlib import Path

from pulse_adapters.ipc.client import Client
from pulse_adapters.sqlite.verify import verify
from pulse_core.model.kinds import Effect
from pulse_core.model.payload import encode
from tests.acceptance.conftest import Served
from tests.integration.cli.cli_home import CliHome

ALLOW = '[executors.run-command]\nallow = ["/bin/true"]\n'
LONG_AGO = time.time() - 86_400


def large(number: int) -> Effect:
    return Effect(
        action="run-command", key=f"k{number}", params={"argv": ["/bin/true", f"{number}" + "x" * 40_000]}
    )


def orphan(home: Path, blob: bytes) -> Path:
    """An old object that nothing names."""
    name = hashlib.sha256(blob).hexdigest()
    path = home / "objects" / name[:2] / name[2:]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(blob)
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def gc(served: Served) -> int:
    """Have the daemon sweep; how many objects went."""
    request = served.append("gc-requested")
    with Client(served.home.socket, timeout=60) as client:
        for item in client.stream("follow", since=request["seq"], kinds=["gc-done"]):
            if item["event"]["cause"] == request["id"]:
                assert "fault" not in item["event"]["data"] or not item["event"]["data"]["fault"]
                return int(item["event"]["data"].get("objects", 0))
    raise AssertionError("no answer")


def test_an_object_that_is_named_at_this_moment_is_never_swept(served: Served) -> None:
    served.configure(ALLOW)
    served.start()
    for number in range(40):
        path = orphan(served.home.path, encode(large(number)).encode())
        sweeping = threading.Thread(target=lambda: gc(served))
        sweeping.start()
        time.sleep(number % 8 / 2_000)
        served.append("effect", f"k{number}", **large(number).model_dump(exclude_defaults=True))
        sweeping.join(60)
        assert path.exists(), "the payload of a recorded row is gone"
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.parent.name + path.name
    orphan(served.home.path, b"nobody wants this")
    assert gc(served) == 1
    assert served.stop() == 0
    assert verify(served.home.events, served.home.objects).fault == ""


def test_a_daemon_that_is_killed_while_it_sweeps_has_lost_nothing(served: Served) -> None:
    served.configure(ALLOW)
    served.start()
    for number in range(20):
        served.append("effect", f"k{number}", **large(number).model_dump(exclude_defaults=True))
    for path in (served.home.path / "objects").glob("??/*"):
        os.utime(path, (LONG_AGO, LONG_AGO))
    orphans = [orphan(served.home.path, str(number).encode()) for number in range(2_000)]
    served.append("gc-requested")
    served.eventually(lambda: not orphans[0].exists() or not orphans[-1].exists(), "it sweeps")
    served.kill()
    assert verify(served.home.events, served.home.objects).fault == ""
    served.start()
    gc(served)
    assert [path for path in orphans if path.exists()] == []
    assert served.stop() == 0
    assert verify(served.home.events, served.home.objects).fault == ""


def test_a_young_snapshot_that_a_tick_names_is_not_counted_as_of_no_use(served: Served) -> None:
    served.configure('[[process]]\nname = "victim"\nstart = ["sleep", "9031"]\n')
    served.start()
    served.pid_when_up("victim")
    served.eventually(lambda: list((served.home.path / "objects").glob("??/*")), "a snapshot is kept")
    for path in (served.home.path / "objects").glob("??/*"):
        os.utime(path, (LONG_AGO, LONG_AGO))
    told = CliHome(served.home.path).upulse("gc", "--dry-run", "--json").json
    assert told["objects"] == gc(served) == 0
