"""The doctor's checks of what the settings need: optional packages, and variables of the daemon's environment."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec

import psutil

from pulse_core.app.doctor import FAIL, OK, WARN, Finding
from pulse_core.settings.settings import Settings

OTLP = "opentelemetry.exporter.otlp.proto.http"
VARIABLE = "env:"


@dataclass(frozen=True)
class NeedChecks:
    """Checks of what settings need; of those that are refused nothing is known, and nothing told.

    settings: None if they are refused; daemon: the process of the daemon that answers, None if none does; resolve: what a
    setting `env:NAME` stands for in an environment; bad_urls: what is wrong with addresses for notices, by their position.
    """

    settings: Callable[[], Settings | None]
    daemon: Callable[[], int | None]
    resolve: Callable[[str, Mapping[str, str]], str | None]
    bad_urls: Callable[[Settings], Mapping[tuple[str | int, ...], str]]

    def extras(self) -> Iterator[Finding]:
        """Check for the optional packages that the settings need."""
        if (settings := self.settings()) is None:
            return
        metrics = settings.metrics
        wanted = {
            "[metrics]": (metrics.listen or metrics.textfile, "prometheus_client", "metrics"),
            "[metrics] otlp": (metrics.otlp, OTLP, "otel"),
        }
        asked = [(setting, *needed) for setting, (is_set, *needed) in wanted.items() if is_set]
        missing = [one for one in asked if not _is_there(one[1])]
        for setting, module, extra in missing:
            words = f"{setting} needs the package {_package(module)}, which is not installed"
            yield Finding("extras", FAIL, words, f"pip install 'upulse[{extra}]'")
        strangers = self.bad_urls(settings)
        for place, words in strangers.items():
            table, *number, _, nth = place
            whose = f"the {int(number[0]) + 1}. [[{table}]], urls" if number else f"[{table}] urls"
            fault = f"{whose}, the {int(nth) + 1}. of them: {words}"
            yield Finding(
                "extras",
                FAIL,
                fault,
                "write it as Apprise's page of that service says, or install what it needs",
            )
        if not missing and not strangers:
            there = ["apprise"] if settings.notice_urls else []
            there += [_package(module) for _, module, _ in asked]
            yield Finding("extras", OK, ", ".join(there) or "none are asked for")

    def environment(self) -> Iterator[Finding]:
        """Check that the daemon has the variables that the settings name."""
        if (settings := self.settings()) is None:
            return
        urls = (*settings.notice_urls, settings.heartbeat.url or "")
        names = sorted({url.removeprefix(VARIABLE) for url in urls if url.startswith(VARIABLE)})
        if not names:
            return
        found = self._environment_of_daemon()
        whose = (
            "the daemon's environment" if found is not None else "this environment (no daemon's can be read)"
        )
        variables = os.environ if found is None else found
        if missing := [name for name in names if not self.resolve(VARIABLE + name, variables)]:
            words = f"not set in {whose}: {', '.join(missing)}"
            advice = "set it where the daemon is started (Environment= of its unit), and restart it"
            yield Finding("environment", WARN if found is None else FAIL, words, advice)
        else:
            yield Finding("environment", OK, f"set in {whose}: {', '.join(names)}")

    def addresses(self) -> Iterator[Finding]:
        """Check that notices go anywhere but into the log."""
        if (settings := self.settings()) and not settings.notice_urls:
            words = "[notify] has no urls: notices are only logged, and reach nobody outside"
            yield Finding("notices", WARN, words, "give [notify] urls; then try them: upulse notify test")

    def _environment_of_daemon(self) -> Mapping[str, str] | None:
        """The variables that the daemon was started with, None if unknown."""
        if (pid := self.daemon()) is None:
            return None
        with suppress(psutil.Error):
            return psutil.Process(pid).environ()
        return None


def _package(module: str) -> str:
    return module.replace("_", "-").replace(".", "-")


def _is_there(module: str) -> bool:
    with suppress(ModuleNotFoundError):
        return find_spec(module) is not None
    return False
