"""Writes a diagnostic bundle: `python -m upulse_cli.wiring.bundle --home H --name N`. Prints what it wrote as JSON."""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from pulse_adapters.config.file import load
from pulse_adapters.config.home import Home
from pulse_adapters.config.toml_writer import show
from pulse_adapters.host.bundle import forget_oldest, machine_parts, write_bundle
from pulse_core.app.bundle import BundlePart, home_parts
from upulse_cli.wiring.home import home_context


def main() -> int:
    """Write the bundle, and let the oldest go."""
    parser = argparse.ArgumentParser(prog="upulse_cli.wiring.bundle", description=__doc__)
    parser.add_argument("--home", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--why", default="")
    options = parser.parse_args()
    os.nice(10)
    home = Home(Path(options.home))
    directory = home.path / "bundles"
    directory.mkdir(mode=0o700, exist_ok=True)
    path = directory / f"{options.name}.tar.gz"
    missing = write_bundle(path, parts(home, options.why))
    forget_oldest(directory)
    print(json.dumps({"path": str(path), "bytes": path.stat().st_size, "missing": missing}))
    return 0


def parts(home: Home, why: str) -> Iterator[BundlePart]:
    """Every file of the bundle; of the settings none that is secret."""
    yield from home_parts(home_context(home), why)
    yield "config.toml", lambda: show(load(home.config))
    yield from machine_parts(home)


if __name__ == "__main__":
    sys.exit(main())
