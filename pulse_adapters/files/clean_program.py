"""The program that cleans the roots of its order."""

import fcntl
import os
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import Any

from pulse_adapters.files import worker
from pulse_adapters.files.cleaner import Cleaner, CleanOrder, CleanReport
from pulse_adapters.files.in_use import find_files_in_use
from pulse_adapters.files.ledger import Ledger
from pulse_adapters.files.safe_directory import SafeDirectory, is_near, open_directory, reason_forbidden
from pulse_adapters.files.worker import Deadline, OrderRefused, OutOfTime, describe_os_error


def open_root(text: str, order: Mapping[str, Any]) -> SafeDirectory | str:
    """Open the root and lock it against another run; or the harmless reason why it is skipped."""
    try:
        place = open_directory(os.path.expanduser(text))
    except FileNotFoundError:
        return "is not there"
    try:
        if fault := reason_forbidden(place.path, order["home"], order["own"]):
            raise OrderRefused(fault)
        if (known := order["known"].get(text)) not in (None, printable_path(place.path)):
            raise OrderRefused(f"{text} leads to {printable_path(place.path)} now, and led to {known} before")
        if order["near"] and not is_near(place, order["near"]):
            passed = "is on another file system"
        elif not _lock(place):
            passed = "is being cleaned already"
        else:
            return place
    except OrderRefused:
        place.close()
        raise
    place.close()
    return passed


def printable_path(path: str) -> str:
    """A path that can be encoded: surrogates become `?`."""
    return path.encode("utf-8", "replace").decode()


def _lock(place: SafeDirectory) -> bool:
    try:
        fcntl.flock(place.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks: two runs at a time do no harm, only work
    return True


@dataclass
class RootReports:
    """The outcome of each root: its real path, why it was skipped, or what is wrong with it."""

    real: dict[str, str] = field(default_factory=dict)
    passed: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    finished: bool = True


def clean_roots(order: Mapping[str, Any], deadline: Deadline) -> Mapping[str, Any]:
    """Clean every root; one that can't be cleaned is reported and does not stop the others."""
    before = time.time_ns() - order["older_than_us"] * 1000
    what = CleanOrder(before, order["limit_bytes"], order["dry_run"], order["effect"])
    tally, report = CleanReport(), RootReports()
    with closing(Ledger(order["ledger"])) as ledger:
        used = find_files_in_use()
        try:
            for text in order["roots"]:
                _clean(text, order, report, lambda root: Cleaner(root, what, used, ledger, tally, deadline))
        except OutOfTime:
            report.finished = False
        ledger.flush()
    return {
        "files": tally.files, "directories": tally.directories, "bytes": tally.bytes,
        "kept": dict(tally.kept.most_common(20)), "would": tally.would, **asdict(report),
        "unwritten": ledger.unwritten,
    }  # fmt: skip


def _clean(
    text: str, order: Mapping[str, Any], report: RootReports, cleaner: Callable[[SafeDirectory], Cleaner]
) -> None:
    try:
        root = open_root(text, order)
        if isinstance(root, str):
            report.passed[text] = root
            return
        report.real[text] = printable_path(root.path)
        with closing(root):
            cleaner(root).clean()
    except OrderRefused as error:
        report.faults.append(str(error))
    except OSError as error:
        report.faults.append(f"{text}: {describe_os_error(error)}")


if __name__ == "__main__":
    worker.run_order(clean_roots, idle=False)
