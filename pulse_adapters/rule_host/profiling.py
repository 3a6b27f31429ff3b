"""Reports what makes a replay differ, and reads of what nothing has sensed, while rules run. For staging: it is slow."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from pulse_adapters.rule_host.time_budget import OURS
from pulse_adapters.workers.source_locations import Places
from pulse_core.model.vitals import Window
from pulse_core.projections.state import Snapshot
from pulse_core.rules import onion

_CALLS = {
    "time": {
        "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
        "process_time_ns", "thread_time", "clock_gettime", "clock_gettime_ns", "sleep",
    },
    "posix": {"urandom", "getrandom", "open", "read", "write", "listdir", "scandir", "stat", "lstat", "getpid", "fork"},
    "io": {"open", "open_code"},
    "_io": {"open", "open_code"},
    "_socket": {"socket", "getaddrinfo", "gethostbyname", "gethostname"},
    "_random": {"random", "getrandbits"},
}  # fmt: skip
_HOST = (*OURS, onion.__file__, "<frozen importlib")
_OF_TYPES = {"datetime": {"now", "utcnow", "today"}, "date": {"today"}}


class Profile:
    """A profile function for `sys.setprofile`; report is called once for each source place, with a message."""

    def __init__(self, places: Places, report: Callable[[str], None]) -> None:
        self._places, self._report = places, report
        self._told: set[str] = set()

    def __enter__(self) -> None:
        sys.setprofile(self._called)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _called(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "return":
            what = _empty_read(frame, argument)
        else:
            stray = _stray(argument) if event == "c_call" else ""
            what = f"{stray} makes a replay differ" if stray else ""
        if what and (place := self._place(frame)) and (words := f"{what} ({place})") not in self._told:
            self._told.add(words)
            self._report(words)

    def _place(self, frame: FrameType | None) -> str:
        """The nearest place in the authors' code; empty if a frame of the host lies between."""
        while frame and not (path := frame.f_code.co_filename).startswith(_HOST):
            if place := self._places.named(path, frame.f_lineno):
                return place
            frame = frame.f_back
        return ""


def _empty_read(frame: FrameType, result: Any) -> str:
    """That what was read here from samples is not there, in words; empty for any other return."""
    code, said = frame.f_code, frame.f_locals
    if code is Snapshot.window.__code__ and type(result) is Window and not result.samples:
        return f"no sample of {said['key']!r} is there to read"
    if code is Window.values.__code__ and result == () and said["self"].samples:
        return f"no sample of {said['self'].samples[-1].key!r} has {said['field']!r}"
    return ""


def _stray(called: Any) -> str:
    """The description of a non-deterministic call; empty for any other call."""
    name, owner = getattr(called, "__name__", ""), getattr(called, "__self__", None)
    if isinstance(owner, type):
        return f"{owner.__name__}.{name}" if name in _OF_TYPES.get(owner.__name__, ()) else ""
    module = getattr(called, "__module__", None) or type(owner).__module__
    if module == "random":
        module = "_random"  # its one hidden instance, whose methods these are
    return f"{module.strip('_')}.{name}" if name in _CALLS.get(module, ()) else ""
