"""The program that archives sessions: finishes an interrupted run, deletes expired archives, writes new ones."""

import fcntl
import os
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from typing import Any

from pulse_adapters.files import worker
from pulse_adapters.files.archiver import Archiver
from pulse_adapters.files.in_use import find_files_in_use
from pulse_adapters.files.safe_directory import SafeDirectory, is_near, open_directory, reason_forbidden
from pulse_adapters.files.sessions import SessionReader
from pulse_adapters.files.worker import Deadline, OrderRefused, OutOfTime, describe_os_error


def open_directories(order: Mapping[str, Any], stack: ExitStack) -> tuple[SafeDirectory, SafeDirectory]:
    """Open the root and the directory for archives, which is made if missing, and locked against another run."""
    try:
        root = open_directory(os.path.expanduser(order["root"]))
    except FileNotFoundError as error:
        raise OrderRefused(f"{order['root']} is not there; name a directory as root of sessions") from error
    stack.callback(root.close)
    if fault := reason_forbidden(root.path, order["home"], order["own"]):
        raise OrderRefused(fault)
    stack.callback((store := make_directory(os.path.expanduser(order["archive"]))).close)
    if f"{store.path}/".startswith(f"{root.path}/") or f"{root.path}/".startswith(f"{store.path}/"):
        raise OrderRefused(f"{store.path} and {root.path} lie in one another; archive to another directory")
    try:
        fcntl.flock(store.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise OrderRefused(f"sessions are being archived to {store.path} already") from error
    except OSError:
        pass  # a file system without locks
    return root, store


def make_directory(path: str) -> SafeDirectory:
    """Make the directory for archives; only the last component of the path is made if it is missing."""
    with suppress(FileNotFoundError):
        return open_directory(path)
    above, name = os.path.split(path.rstrip("/"))
    try:
        with closing(open_directory(above)) as parent:
            os.mkdir(name, mode=0o700, dir_fd=parent.fd)
        return open_directory(path)
    except OSError as error:
        raise OrderRefused(
            f"{path}, for the archives, cannot be made: {describe_os_error(error)}; make it by hand"
        ) from error


def archive_root(order: Mapping[str, Any], deadline: Deadline) -> Mapping[str, Any]:
    """Remove partial archives, finish an interrupted run; unless `finish_only`, expire old archives and write new ones."""
    now = time.time_ns()
    with ExitStack() as stack:
        root, store = open_directories(order, stack)
        if order["near"] and not is_near(root, order["near"]):
            return {"sessions": 0, "passed": f"{root.path} is on another file system than {order['near']}"}
        reader = SessionReader(root, now - order["keep_us"] * 1000, find_files_in_use(), deadline)
        archiver = Archiver(reader, store, order["effect"], deadline)
        tally = archiver.tally
        try:
            archiver.tidy()
            archiver.finish()
            if not order["finish_only"]:
                archiver.expire(now - order["retain_us"] * 1000)
                archiver.archive()
        except OutOfTime:
            return {**tally.told, "finished": False}
        except OrderRefused as error:
            before = f"; {tally.sessions} sessions were archived before that" if tally.sessions else ""
            raise OrderRefused(f"{error}{before}") from error
        except OSError as error:
            raise OrderRefused(f"{error.filename or root.path}: {describe_os_error(error)}") from error
        return {**tally.told, "finished": True}


if __name__ == "__main__":
    worker.run_order(archive_root, idle=True)
