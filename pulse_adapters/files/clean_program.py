"""The program that cleans: the roots that its order names, each as far as it may be cleaned."""

import fcntl
import os
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import Any

from pulse_adapters.files import worker
from pulse_adapters.files.cleaner import Cleaner, CleanOrder, CleanReport
from pulse_adapters.files.in_use import in_use
from pulse_adapters.files.ledger import Ledger
from pulse_adapters.files.safe_directory import SafeDirectory, enter, forbidden, is_near
from pulse_adapters.files.worker import CannotGo, OutOfTime, Watch, why


def opened(text: str, order: Mapping[str, Any]) -> SafeDirectory | str:
    """The root, locked against another run; or why it is passed over although nothing is wrong."""
    try:
        place = enter(os.path.expanduser(text))
    except FileNotFoundError:
        return "is not there"
    try:
        if fault := forbidden(place.path, order["home"], order["own"]):
            raise CannotGo(fault)
        if (known := order["known"].get(text)) not in (None, spelled(place.path)):
            raise CannotGo(f"{text} leads to {spelled(place.path)} now, and led to {known} before")
        if order["near"] and not is_near(place, order["near"]):
            passed = "is on another file system"
        elif not _locked(place):
            passed = "is being cleaned already"
        else:
            return place
    except CannotGo:
        place.close()
        raise
    place.close()
    return passed


def spelled(path: str) -> str:
    """A path as it can be told: half a character becomes `?`."""
    return path.encode("utf-8", "replace").decode()


def _locked(place: SafeDirectory) -> bool:
    try:
        fcntl.flock(place.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks: two runs at a time do no harm, only work
    return True


@dataclass
class Report:
    """What became of each root: its real path, why it was passed over, or what is wrong with it."""

    real: dict[str, str] = field(default_factory=dict)
    passed: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    finished: bool = True


def work(order: Mapping[str, Any], watch: Watch) -> Mapping[str, Any]:
    """Clean every root; one that can't be cleaned is told and keeps none of the others."""
    before = time.time_ns() - order["older_than_us"] * 1000
    what = CleanOrder(before, order["limit_bytes"], order["dry_run"], order["effect"])
    tally, report = CleanReport(), Report()
    with closing(Ledger(order["ledger"])) as ledger:
        used = in_use()
        try:
            for text in order["roots"]:
                _clean(text, order, report, lambda root: Cleaner(root, what, used, ledger, tally, watch))
        except OutOfTime:
            report.finished = False
        ledger.flush()
    return {
        "files": tally.files, "directories": tally.directories, "bytes": tally.bytes,
        "kept": dict(tally.kept.most_common(20)), "would": tally.would, **asdict(report),
        "unwritten": ledger.unwritten,
    }  # fmt: skip


def _clean(
    text: str, order: Mapping[str, Any], report: Report, cleaner: Callable[[SafeDirectory], Cleaner]
) -> None:
    try:
        root = opened(text, order)
        if isinstance(root, str):
            report.passed[text] = root
            return
        report.real[text] = spelled(root.path)
        with closing(root):
            cleaner(root).clean()
    except CannotGo as error:
        report.faults.append(str(error))
    except OSError as error:
        report.faults.append(f"{text}: {why(error)}")


if __name__ == "__main__":
    worker.run(work, idle=False)
