"""The program of the worker that writes a diagnostic bundle, and answers with what it wrote."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pulse_adapters.config.file import load
from pulse_adapters.config.home import Home
from pulse_adapters.config.toml_writer import settings_as_toml
from pulse_adapters.host.bundle import machine_parts, remove_old_bundles, write_bundle
from pulse_adapters.sandbox.priorities import LEAST_NICE, lower_priority
from pulse_adapters.workers import child_side
from pulse_core.app.bundle import BundlePart, home_parts
from pulse_core.model.errors import PulseError
from upulse_cli.wiring.home import home_context


def write(order: Mapping[str, Any]) -> Mapping[str, Any]:
    """Write the bundle, and let the oldest go. Raises PulseError."""
    lower_priority(LEAST_NICE)
    home = Home(Path(order["home"]))
    directory = home.path / "bundles"
    path = directory / f"{order['name']}.tar.gz"
    try:
        child_side.join_group(order["group"])
        directory.mkdir(mode=0o700, exist_ok=True)
        missing = write_bundle(path, parts(home, order["why"]))
        size = path.stat().st_size
        remove_old_bundles(directory)
    except OSError as error:
        raise PulseError(f"no bundle was written: {error.strerror}: {error.filename}") from error
    return {"path": str(path), "bytes": size, "missing": missing}


def parts(home: Home, why: str) -> Iterator[BundlePart]:
    """Every file of the bundle; of the settings none that is secret."""
    yield from home_parts(home_context(home), why)
    yield "config.toml", lambda: settings_as_toml(load(home.config))
    yield from machine_parts(home)


if __name__ == "__main__":
    child_side.answer_once(write)
