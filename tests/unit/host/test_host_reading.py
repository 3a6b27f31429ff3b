"""What the host adapter reads out of texts and numbers, without starting anything."""

import os
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_adapters.host.clock import SystemClock
from pulse_adapters.host.listening_ports import ListeningAddress, listening_inodes, listening_sockets
from pulse_adapters.host.outputs import (
    HEAD,
    TAIL,
    FileOutput,
    LogOutput,
    OutputCapture,
    end_of_output,
    open_log_output,
)
from pulse_adapters.host.process_search import is_pulse
from pulse_adapters.workers.boot_id import boot_id
from pulse_adapters.workers.proc import read_stat


def test_the_clock_tells_boot_and_never_goes_back() -> None:
    clock = SystemClock()
    first, second = clock.now(), clock.now()
    assert first.boot == boot_id() != ""
    assert first.mono <= second.mono
    assert abs(first.at - second.at) < 1_000_000


def test_a_name_with_parentheses_and_blanks_fools_nobody() -> None:
    name, path = ") R 1 (x", f"/proc/{os.getpid()}/comm"
    with open(path) as file:
        old = file.read().strip()
    with open(path, "w") as file:
        file.write(name)
    try:
        own = read_stat(os.getpid())
    finally:
        with open(path, "w") as file:
            file.write(old)
    assert own is not None
    assert (own.parent, own.group, own.session) == (os.getppid(), os.getpgrp(), os.getsid(0))
    assert own.alive


@given(st.lists(st.binary(max_size=40_000), max_size=12))
def test_a_capture_keeps_both_ends_whatever_comes(chunks: list[bytes]) -> None:
    capture, whole = OutputCapture(), b"".join(chunks)
    for chunk in chunks:
        capture.take(chunk)
    if len(whole) <= HEAD + TAIL:
        assert capture.text == whole.decode(errors="replace")
    else:
        gap = f"\n[… {len(whole) - HEAD - TAIL} bytes left out …]\n".encode()
        assert capture.text == (whole[:HEAD] + gap + whole[-TAIL:]).decode(errors="replace")


def test_last_words_are_the_end() -> None:
    assert end_of_output(" all well \n") == "all well"
    assert end_of_output("a" * 100 + "b" * 1500) == "…" + "b" * 1500


@pytest.mark.parametrize(
    ("argv", "pulse"),
    [
        (["/usr/bin/upulse", "process", "list"], True),
        (["/usr/bin/python3", "/usr/bin/upulse", "status"], True),
        (["python3", "-m", "upulse_cli.serve", "--home", "x"], True),
        (["python3", "-I", "-m", "upulse_cli", "status"], True),
        (["python3", "-P", "-m", "pulse_adapters.network.probe"], True),
        (["python3", "worker.py", "upulse"], False),
        (["python3", "-m", "http.server"], False),
        ([], False),
    ],
)
def test_pulse_knows_its_own_command_lines(argv: list[str], pulse: bool) -> None:
    assert is_pulse(argv) is pulse


@pytest.mark.parametrize(
    ("bound", "asked", "leads"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("0.0.0.0", "127.0.0.1", True),
        ("127.0.0.2", "127.0.0.1", False),
        ("::1", "::1", True),
        ("::", "127.0.0.1", True),
        ("0.0.0.0", "::1", False),
        ("::ffff:127.0.0.1", "127.0.0.1", True),
    ],
)
def test_a_listener_is_found_by_the_address_that_reaches_it(bound: str, asked: str, leads: bool) -> None:
    family = socket.AF_INET6 if ":" in bound else socket.AF_INET
    with socket.socket(family) as server:
        if family is socket.AF_INET6:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.bind((bound, 0))
        server.listen()
        kind = socket.AF_INET6 if ":" in asked else socket.AF_INET
        inodes = listening_inodes([ListeningAddress(kind, asked, server.getsockname()[1])])
        own = os.readlink(f"/proc/self/fd/{server.fileno()}")
    assert [f"socket:[{inode.decode()}]" for inode in inodes] == ([own] if leads else [])


def test_each_of_many_listeners_is_found() -> None:
    with ExitStack() as opened:
        servers = [opened.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(100)]
        ports = {server.getsockname()[1] for server in servers}
        assert ports <= {one.port for one in listening_sockets()}


def test_a_pipe_in_the_place_of_an_output_is_not_waited_for(tmp_path: Path) -> None:
    output = FileOutput(open_log_output(log := tmp_path / "log"))
    log.unlink()
    os.mkfifo(log)
    assert output.end() == f"[its output in {log} cannot be read: it is no plain file]"


def test_of_an_output_that_claims_any_size_its_beginning_and_end_are_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"before\nbegun\n")
    with log.open("ab") as file:
        file.truncate(1 << 43)
        file.seek(0, os.SEEK_END)
        file.write(b"\nover\n")
    output = FileOutput(LogOutput(os.open(log, os.O_RDONLY), log, "", 7))
    said = output.end()
    assert said.startswith("begun\n")
    assert said.endswith("\nover\n")
    assert len(said) < HEAD + TAIL + 100
