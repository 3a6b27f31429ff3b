"""What Pulse runs on: Python, packages, SQLite."""

import platform
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from pulse_adapters.notify.services import strange
from pulse_core import __version__
from upulse_cli.doctor.findings import FAIL, OK, Finding, Ground

PACKAGES = (
    "aiosqlite", "dnspython", "GitPython", "httpx", "psutil", "pydantic", "rich", "typer", "uuid-utils", "watchfiles"
)  # fmt: skip
WAL_RESET_FIXED = (3, 51, 3)
OTLP = "opentelemetry.exporter.otlp.proto.http"
OLDEST_SQLITE = (3, 38, 0)
"""STRICT tables came with 3.37, JSON built in with 3.38."""


def python(ground: Ground) -> Iterator[Finding]:
    """The interpreter."""
    yield Finding("python", OK, f"Pulse {__version__}, Python {platform.python_version()}, {sys.executable}")


def packages(ground: Ground) -> Iterator[Finding]:
    """What it cannot do without."""
    found, missing = [], []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            missing.append(package)
    if missing:
        yield Finding(
            "packages",
            FAIL,
            f"not installed: {', '.join(missing)}",
            "install Pulse again: pip install upulse",
        )
    else:
        yield Finding("packages", OK, ", ".join(found))


def sqlite(ground: Ground) -> Iterator[Finding]:
    """Its version, and the one bug that matters."""
    found = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        yield Finding(
            "sqlite", FAIL, f"SQLite {found} is older than {oldest}", "use a Python with a newer SQLite"
        )
    elif sqlite3.sqlite_version_info < WAL_RESET_FIXED:
        yield Finding(
            "sqlite",
            OK,
            f"SQLite {found}, without the fix of the WAL-reset bug (3.51.3); Pulse is safe all the same: only"
            " whoever holds the home's lock writes and checkpoints, all others open read-only",
        )
    else:
        yield Finding("sqlite", OK, f"SQLite {found}, with the fix of the WAL-reset bug")


def extras(ground: Ground) -> Iterator[Finding]:
    """Optional packages that the settings ask for."""
    settings, _ = ground.settings
    metrics = settings.metrics
    wanted = (
        ("[notify] urls", settings.notify.urls, "apprise", "apprise", "notify"),
        (
            "[metrics]",
            metrics.listen or metrics.textfile,
            "prometheus-client",
            "prometheus_client",
            "metrics",
        ),
        ("[metrics] otlp", metrics.otlp, OTLP.replace(".", "-"), OTLP, "otel"),
    )
    asked = [rest for _, is_set, *rest in wanted if is_set]
    missing = [(setting, *rest) for setting, is_set, *rest in wanted if is_set and not _is_there(rest[1])]
    for setting, package, _, extra in missing:
        words = f"{setting} needs the package {package}, which is not installed"
        yield Finding("extras", FAIL, words, f"pip install 'upulse[{extra}]'")
    strangers = strange(settings.notify) if _is_there("apprise") else {}
    for place, words in strangers.items():
        fault = f"[notify] urls, the {place + 1}. of them: {words}"
        yield Finding("extras", FAIL, fault, "write it as Apprise's page of that service says")
    if not missing and not strangers:
        yield Finding("extras", OK, ", ".join(package for package, *_ in asked) or "none are asked for")


def _is_there(module: str) -> bool:
    with suppress(ModuleNotFoundError):
        return find_spec(module) is not None
    return False
