"""Replaces a file: whole, or not at all."""

import os
from pathlib import Path


def replace_file(path: Path, body: bytes) -> None:
    """Replace it; readable by everybody, as node_exporter needs. Raises OSError, and then keeps the old one."""
    new = path.with_name(f".{path.name}.new")
    try:
        with open(new, "wb") as file:
            os.fchmod(file.fileno(), 0o644)
            file.write(body)
        os.replace(new, path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
