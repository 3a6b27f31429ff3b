"""Files that are no files, for what has to refuse them."""

import os
import socket
from pathlib import Path


def bound_socket(path: Path) -> None:
    """A socket of this name that nobody listens at; the path may be longer than an address may be."""
    folder = os.open(path.parent, os.O_PATH)
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)
