"""A real LLM endpoint that hangs, and a real network that goes away, under a real daemon."""

import json
import os
import select
import signal
import sys
from pathlib import Path
from typing import Any

from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_core.ports.readers import EventQuery
from tests import processes
from tests.acceptance.conftest import Served
from tests.acceptance.test_real_processes import argv, free_port

PAGE = """
import http.server, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers(); self.wfile.write(b"ok")
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Page).serve_forever()
"""
NAMES = """
import socket, sys
import dns.message, dns.rrset
from tests import processes
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", int(sys.argv[1])))
while True:
    packet, who = server.recvfrom(4096)
    answer = dns.message.make_response(dns.message.from_wire(packet))
    answer.answer.append(dns.rrset.from_text(answer.question[0].name, 60, "IN", "A", "192.0.2.1"))
    server.sendto(answer.to_wire(), who)
"""
RESTARTS = 'restart = { max = 1000, backoff = "0s", healthy_after = "0s", grace = "30s" }'


def process(name: str, program: str, port: int) -> str:
    return f'[[process]]\nname = "{name}"\nstart = {argv(sys.executable, "-c", program, port)}\n{RESTARTS}\n'


def events(served: Served, kind: str) -> list[tuple[str, dict[str, Any]]]:
    """Subject and data of every event of this kind."""
    with SqliteEventReader(served.home.path) as log:
        return [(row.subject, json.loads(row.data)) for row in log.events(EventQuery(kinds=(kind,)))]


def conditions(served: Served) -> list[tuple[str, object]]:
    return [(subject, data["state"]) for subject, data in events(served, "condition-raised")]


def sample(served: Served, key: str) -> dict[str, Any]:
    """The newest sample of a sense."""
    return dict(served.status()["vitals"].get(key, {}))


def helpers(served: Served) -> list[int]:
    """The children of the daemon that ask the network."""
    assert served.daemon is not None
    return processes.children(served.daemon.pid, "pulse_adapters.network.probe")


def test_an_endpoint_that_hangs_is_restarted_after_three_questions(served: Served) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/health"
    served.configure(
        process("litellm", PAGE, port)
        + f'[[llm]]\nurl = "{url}"\nrestart = "litellm"\ninterval = "200ms"\ntimeout = "1500ms"\ngrace = "6s"\n'
    )
    served.start()
    first = served.pid_when_up("litellm")
    served.eventually(lambda: sample(served, "llm").get(url, {}).get("ok"), "it answers")
    served.eventually(lambda: "excused" not in sample(served, "llm")[url], "its grace is over")
    os.kill(first, signal.SIGSTOP)
    served.eventually(lambda: events(served, "condition-raised"), "it is known to hang")
    second = served.pid_when_up("litellm", other_than=first)
    assert second != first
    assert not Path(f"/proc/{first}").exists()
    served.eventually(lambda: events(served, "condition-cleared"), "it answers again")
    ((name, raised),) = events(served, "condition-raised")
    assert (name, raised["state"]) == (f"llm:{url}", "down")
    assert (
        raised["evidence"]
        == "it took the connection, but did not answer within 1.5 s; 3 questions in a row failed"
    )
    wishes = [data for _, data in events(served, "effect") if data["rule"] == "llm_watchdog"]
    assert [wish["key"] for wish in wishes] == ["restart-process:litellm"]
    assert len(events(served, "process-died")) >= 1


def test_a_network_that_goes_away_is_told_apart_and_comes_back(served: Served) -> None:
    names, page = free_port(), free_port()
    url = f"http://127.0.0.1:{page}/"
    served.configure(
        process("names", NAMES, names)
        + process("page", PAGE, page)
        + f'[network]\ndns = ["one.example", "two.example"]\nhttp = ["{url}"]\n'
        + f'resolvers = ["127.0.0.1#{names}"]\ninterval = "200ms"\ntimeout = "500ms"\nslow = "400ms"\n'
    )
    served.start()
    pids = {name: served.pid_when_up(name) for name in ("names", "page")}
    served.eventually(
        lambda: sample(served, "network").get("streak", 0) and not sample(served, "network")["state"], "well"
    )
    before = len(conditions(served))
    os.kill(pids["names"], signal.SIGSTOP)
    served.eventually(lambda: ("network", "dns-only") in conditions(served)[before:], "names are gone")
    os.kill(pids["page"], signal.SIGSTOP)
    served.eventually(lambda: ("network", "down") in conditions(served)[before:], "all is gone")
    os.kill(pids["names"], signal.SIGCONT)
    served.eventually(lambda: ("network", "http-only") in conditions(served)[before:], "names are back")
    os.kill(pids["page"], signal.SIGCONT)
    served.eventually(lambda: events(served, "condition-cleared"), "all is back")

    def titles() -> list[str]:
        return [data["params"]["title"] for _, data in events(served, "effect") if data["action"] == "notify"]

    served.eventually(lambda: "resolved: the network" in titles(), "that it is over")


def test_the_helper_is_there_only_while_there_is_something_to_ask(served: Served) -> None:
    served.configure("# nothing\n")
    served.start()
    assert helpers(served) == []
    port = free_port()
    served.home.config.write_text(
        process("page", PAGE, port) + f'[network]\nhttp = ["http://127.0.0.1:{port}/"]\ninterval = "200ms"\n'
    )
    served.append("reload-requested")
    (first,) = served.eventually(lambda: helpers(served), "a helper")
    os.kill(first, signal.SIGSTOP)
    served.kill()
    handle = os.pidfd_open(first)
    os.kill(first, signal.SIGCONT)
    death = select.poll()
    death.register(handle, select.POLLIN)
    assert death.poll(60_000), "it outlives its daemon"
    os.close(handle)
