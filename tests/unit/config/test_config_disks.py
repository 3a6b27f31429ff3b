"""The file system of the home is watched in any case, and none twice."""

from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.config import settings_check
from pulse_adapters.config.settings_check import validate, with_disk_of
from pulse_core.settings.resources import DiskBound


def points_of(data: dict[str, Any], home: str, monkeypatch: pytest.MonkeyPatch, *mounts: str) -> list[str]:
    monkeypatch.setattr(settings_check, "mount_points", lambda: {"/", *mounts})
    disk = with_disk_of(home, data).get("resources", {}).get("disk", {})
    return [bound.get("path", "/") for bound in ([disk] if isinstance(disk, dict) else disk)]


@pytest.mark.parametrize(
    ("disk", "mounts", "watched"),
    [
        ({}, (), ["/"]),
        ({}, ("/home",), ["/", "/home/ada/.upulse"]),
        ({"path": "/srv"}, ("/home", "/srv"), ["/srv", "/home/ada/.upulse"]),
        ([{"path": "/home/bob"}], ("/home",), ["/home/bob"]),
        ([{"path": "/home/bob"}], ("/home", "/home/ada"), ["/home/bob", "/home/ada/.upulse"]),
        ([], (), ["/home/ada/.upulse"]),
        ({"path": "//srv"}, ("/home", "/srv"), ["//srv", "/home/ada/.upulse"]),
        ([{"path": "//home/bob"}], ("/home",), ["//home/bob"]),
    ],
)
def test_the_homes_own_file_system_is_among_those_that_are_watched(
    disk: Any, mounts: tuple[str, ...], watched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = {"resources": {"disk": disk}} if disk != {} else {}
    assert points_of(data, "/home/ada/.upulse", monkeypatch, *mounts) == watched


def test_it_has_the_usual_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_check, "mount_points", lambda: {"/", str(tmp_path)})
    usual = DiskBound().model_dump()
    disks = validate({}, home=tmp_path).resources.disk
    assert [one.model_dump() for one in disks] == [usual, {**usual, "path": str(tmp_path)}]
    assert [one.path for one in validate({}).resources.disk] == ["/"]
