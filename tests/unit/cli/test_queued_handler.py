"""What the daemon says never waits for who reads it."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pulse_adapters.host.queued_handler import WAITING, DescriptorHandler, QueuedHandler

SPEAKER = f"""
import logging
from pulse_adapters.host import queued_handler
from upulse_cli.serve import speak
queued_handler.LAST = 0.0
speak()
for number in range({WAITING} * 2):
    logging.getLogger("pulse.x").info("%s", "word " * 20)
print("all is said", flush=True)
"""


def test_lines_come_in_order_however_late_they_are_read() -> None:
    """Far more than a pipe holds: all of it waits for the reader, and nobody for the pipe."""
    reads, writes = os.pipe()
    handler = QueuedHandler(DescriptorHandler(writes, logging.Formatter("%(message)s")))
    log = logging.Logger("it")
    log.addHandler(handler)
    told = [f"{number} {'word' * 20}" for number in range(2_000)]
    for line in told:
        log.info("%s", line)
    with open(reads) as reader:
        assert [next(reader).rstrip("\n") for _ in told] == told
    os.close(writes)


def test_a_record_that_can_t_be_spelled_silences_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    reads, writes = os.pipe()
    log = logging.Logger("it")
    log.addHandler(QueuedHandler(DescriptorHandler(writes, logging.Formatter("%(message)s"))))
    log.info("%d", "no number")
    log.info("after it")
    with open(reads) as reader:
        assert next(reader) == "after it\n"
    os.close(writes)
    assert "'no number'" in capsys.readouterr().err


def test_who_reads_nothing_holds_up_neither_words_nor_the_end(tmp_path: Path) -> None:
    """A container's log driver that blocks, a stopped journald, a terminal after Ctrl-S."""
    reads, writes = os.pipe()
    done = subprocess.run(
        [sys.executable, "-c", SPEAKER],
        stdout=subprocess.PIPE,
        stderr=writes,
        text=True,
        cwd=tmp_path,
        timeout=60,
    )
    os.close(writes)
    os.close(reads)
    assert (done.returncode, done.stdout) == (0, "all is said\n")


def test_who_reads_no_more_is_not_minded() -> None:
    reads, writes = os.pipe()
    os.close(reads)
    DescriptorHandler(writes, logging.Formatter()).handle(logging.makeLogRecord({"msg": "it"}))
    os.close(writes)
