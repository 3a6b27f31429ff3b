"""Homes by the names of their instances."""

from pathlib import Path

import pytest

from pulse_adapters.config.home import BadInstance, Home, NotUsable, home_called, instance_at
from pulse_adapters.systemd.manager import unit_name


@pytest.mark.parametrize("name", ["staging", "a", "A-b_9", "0", "x" * 32])
def test_a_name_is_a_home_beside_the_usual_one_and_back(name: str) -> None:
    assert home_called(name) == f"~/.upulse-{name}"
    assert instance_at(Path(f"/users/me/.upulse-{name}")) == name
    assert unit_name(Path(f"/users/me/.upulse-{name}")) == f"upulse@{name}.service"


@pytest.mark.parametrize(
    "name", ["", "../x", "a/b", "-a", "_a", "a b", "a.b", "ä", "x" * 33, "a\n", "a@b", "%i"]
)
def test_what_is_no_name_is_refused_with_what_one_looks_like(name: str) -> None:
    with pytest.raises(BadInstance, match="write 1 to 32 letters, digits"):
        home_called(name)
    assert instance_at(Path(f"/users/me/.upulse-{name}")) is None
    assert unit_name(Path(f"/users/me/.upulse-{name}")) == "upulse.service"


@pytest.mark.parametrize("path", ["/users/me/.upulse", "/srv/pulse", "/.upulse-", "/x/y.upulse-a"])
def test_another_home_is_no_instance(path: str) -> None:
    assert instance_at(Path(path)) is None
    assert unit_name(Path(path)) == "upulse.service"


def test_the_environment_names_an_instance_or_a_home_but_not_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/users/me")
    monkeypatch.delenv("UPULSE_HOME", raising=False)
    monkeypatch.setenv("UPULSE_INSTANCE", "staging")
    assert Home.resolve().path == Path("/users/me/.upulse-staging")
    assert Home.resolve("/srv/x").path == Path("/srv/x")
    monkeypatch.setenv("UPULSE_HOME", "/srv/y")
    assert Home.resolve("/srv/x").path == Path("/srv/x")
    with pytest.raises(NotUsable, match="both say which home is meant; unset one"):
        Home.resolve()
    monkeypatch.setenv("UPULSE_INSTANCE", "")
    assert Home.resolve().path == Path("/srv/y")
    monkeypatch.setenv("UPULSE_HOME", "")
    monkeypatch.setenv("UPULSE_INSTANCE", "../x")
    with pytest.raises(BadInstance):
        Home.resolve()
