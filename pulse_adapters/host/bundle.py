"""Diagnostic bundles: an archive of text files about this machine and its home; only the newest are kept."""

import io
import json
import tarfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from pulse_adapters.workers.plain_file import end_of_plain, replacing
from pulse_core.app.bundle import BundlePart
from pulse_core.home import HomeLayout
from pulse_core.model.secret_text import hide_secrets

TAIL = 256 * 1024
KEPT = 10
ABANDONED_S = 3_600
"""Seconds without a change after which nobody writes an unfinished bundle any more: each has minutes for all of it."""
SYSTEM = ("meminfo", "loadavg", "uptime", "mounts", "pressure/cpu", "pressure/memory", "pressure/io")


def write_bundle(path: Path, parts: Iterable[BundlePart]) -> list[str]:
    """Write the bundle, renamed into place once complete; returns what could not be read, with the reason."""
    missing: list[str] = []
    with replacing(path) as file, tarfile.open(fileobj=file, mode="w:gz", compresslevel=6) as bundle:
        for name, part in parts:
            try:
                text = part()
            except Exception as error:  # noqa: BLE001  a part that fails must not keep the others out
                missing.append(f"{name}: {type(error).__name__}: {error}")
                continue
            add_file(bundle, name, text.encode("utf-8", "replace"))
        add_file(bundle, "missing.txt", "\n".join(missing).encode())
    return missing


def add_file(bundle: tarfile.TarFile, name: str, blob: bytes) -> None:
    """Add one file to the bundle."""
    info = tarfile.TarInfo(f"pulse/{name}")
    info.size, info.mtime, info.mode = len(blob), int(time.time()), 0o600
    bundle.addfile(info, io.BytesIO(blob))


def machine_parts(home: HomeLayout) -> Iterator[BundlePart]:
    """The process table, the kernel's messages, and the ends of the logs."""
    yield "processes.jsonl", lambda: "\n".join(process_table_text())
    for name in SYSTEM:
        yield f"proc/{name}", lambda name=name: Path("/proc", name).read_text()  # type: ignore[misc]
    for path in sorted((*home.outputs.glob("*.log"), home.daemon_log)) if home.outputs.exists() else ():
        yield f"logs/{path.name}", lambda path=path: hide_secrets(end_of_plain(path, TAIL, follow=True))  # type: ignore[misc]


def process_table_text() -> Iterator[str]:
    """The process table; command lines without what is written as a secret, and nobody's environment."""
    fields = ["pid", "ppid", "username", "status", "create_time", "memory_info", "num_threads", "cmdline"]
    for process in psutil.process_iter(fields):
        told = dict(process.info)
        told["rss"] = getattr(told.pop("memory_info"), "rss", None)
        told["cmdline"] = hide_secrets(" ".join(told["cmdline"] or ()))
        yield json.dumps(told)


def remove_old_bundles(directory: Path) -> None:
    """Remove all but the newest bundles, and the unfinished ones that nobody writes; others may do the same meanwhile."""
    now = time.time()
    bundles = sorted(directory.glob("*.tar.gz"), key=modified)
    for old in (
        *bundles[:-KEPT],
        *(one for one in directory.glob(".*.unfinished") if now - modified(one) > ABANDONED_S),
    ):
        old.unlink(missing_ok=True)


def modified(path: Path) -> float:
    """When the file was last written; long ago if it is gone."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
