"""All benchmarks, or those named, as one table: `python -m tests.benchmarks [NAME…]`."""

import argparse
import importlib
import platform
import signal
import sqlite3
import sys

from tests.benchmarks.table import Row, markdown

QUICK = ("reflex", "capabilities", "poll", "appends", "effects", "tick", "cli", "logs", "tools", "peers")
SLOW = ("tasks", "guidance", "engine", "starvation", "promote", "dev", "start", "verify", "idle")
NAMES = (*QUICK, *SLOW)


def rows(name: str) -> list[Row]:
    """What this benchmark measured, or why it could not: the others are worth having all the same."""
    print(f"{name} …", file=sys.stderr, flush=True)
    try:
        measured: list[Row] = importlib.import_module(f"tests.benchmarks.bench_{name}").run()
    except Exception as error:  # noqa: BLE001 - told in its place in the table
        return [Row(name, "", f"not measured: {' '.join(str(error).split())[:200] or type(error).__name__}")]
    return measured


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(NAMES)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was begun is ended
    names = parser.parse_args().names or NAMES
    if unknown := set(names) - set(NAMES):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(NAMES)}")
    table = markdown([row for name in names for row in rows(name)])
    versions = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.release()}"
    print(f"{table}\n\n{versions}")


if __name__ == "__main__":
    main()
