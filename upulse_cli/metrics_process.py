"""The metrics process: `python -m upulse_cli.metrics_process --home H …`. It reads, asks the daemon at most once a second,
serves numbers and exports traces; it ends when the daemon hangs up, and so with it.
"""

import argparse
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulse_adapters.config.home import Home
from pulse_adapters.ipc.client import Client
from pulse_adapters.ipc.umask import private_files
from pulse_adapters.metrics.process import MetricsHome, run
from pulse_adapters.metrics.tracing import RecordedTraces
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.vitals_reader import SqliteVitalsReader
from pulse_adapters.workers.database_files import files_of
from pulse_core.model.errors import PulseError

if TYPE_CHECKING:
    from pulse_adapters.metrics.families import MetricsInput

PATIENCE_S = 2.0


@private_files()
def main() -> None:
    """Serve and export until the daemon hangs up."""
    options = arguments()
    home = Home(Path(options.home))
    traces = RecordedTraces(partial(SqliteEventReader, home.path), partial(SqliteVitalsReader, home.path))
    seen = MetricsHome(partial(look, home), traces, home.exported)
    run(seen, options.listen, options.textfile, options.every, options.otlp)


def arguments() -> argparse.Namespace:
    """What the daemon, or a person, wants."""
    parser = argparse.ArgumentParser(prog="upulse_cli.metrics_process", description=main.__doc__)
    parser.add_argument("--home", required=True)
    parser.add_argument("--listen", help="address that serves /metrics")
    parser.add_argument("--textfile", help="file that is written for node_exporter")
    parser.add_argument("--every", type=float, default=15.0, help="seconds between two writings of it")
    parser.add_argument("--otlp", help="URL of a collector for traces")
    return parser.parse_args()


def look(home: Home) -> "MetricsInput":
    """How everything stands: the daemon's own words, or the little that the files say while it does not answer."""
    from pulse_adapters.metrics.families import MetricsInput

    sizes = sizes_of(home)
    try:
        with Client(home.socket, PATIENCE_S) as client:
            return MetricsInput(True, client.ask("status"), sizes)
    except (PulseError, OSError):
        return MetricsInput(False, left_behind(home), sizes)


def left_behind(home: Home) -> dict[str, Any]:
    """What is in the files, and quickly read."""
    said: dict[str, Any] = {}
    with suppress(PulseError, OSError), SqliteEventReader(home.path) as log:
        said["log"] = {"rows": log.head().seq}
    with SqliteVitalsReader(home.path) as vitals:
        said["tick"] = {"count": vitals.tick_count()}
    return said


def sizes_of(home: Home) -> dict[str, int]:
    """Bytes of each store, its write-ahead log with it."""
    stores = (home.events, home.vitals, home.state)
    sizes = {store.name: sum(map(size, files_of(store)[:2])) for store in stores}
    with suppress(OSError):
        sizes[home.outputs.name] = sum(size(path) for path in home.outputs.iterdir())
    return sizes


def size(path: Path) -> int:
    """Bytes of a file, 0 if there is none."""
    with suppress(OSError):
        return path.stat().st_size
    return 0


if __name__ == "__main__":
    main()
