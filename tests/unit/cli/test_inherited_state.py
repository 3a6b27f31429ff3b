"""What a daemon inherits from whoever starts it, and does not keep."""

import subprocess
import sys
from pathlib import Path

BEGINS = """
import os, signal, sys
from upulse_cli import serve

signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
serve.begin_anew()
assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())
assert [sys.stdin.fileno(), sys.stdout.fileno(), sys.stderr.fileno()] == [0, 1, 2]
sys.stderr.write("to nobody")
sys.exit(7)
"""


def test_neither_blocked_signals_nor_closed_streams_are_kept(tmp_path: Path) -> None:
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", BEGINS]
    assert subprocess.run(closed, cwd=tmp_path, timeout=60).returncode == 7
