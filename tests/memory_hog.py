"""A process that keeps the lock of its memory busy: whoever reads its environment or command line sleeps meanwhile."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("memory_hog.c")


@contextmanager
def memory_hog(user: int | None = None, gib: int = 8, others: int = 16) -> Iterator["subprocess.Popen[str]"]:
    """The process, which works on so many GiB of addresses, with so many others that come and go and share its memory."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        program = f"{folder}/hog"
        subprocess.run([compiler, "-O1", "-o", program, str(SOURCE)], check=True, timeout=60)
        hog = subprocess.Popen([program, str(gib), str(others)], stdout=subprocess.PIPE, text=True, user=user)
        try:
            assert hog.stdout is not None
            assert hog.stdout.readline() == "ready\n"
            yield hog
        finally:
            hog.kill()
            hog.communicate(timeout=60)
