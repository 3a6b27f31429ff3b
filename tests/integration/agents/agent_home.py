"""A program that stands for an agent: it speaks as Claude Code does, and does what its prompt asks for."""

import sys
from pathlib import Path

SCRIPT = r"""
import json, os, socket, subprocess, sys, time

if "auth" in sys.argv:
    sys.exit("Not logged in.")
asked = sys.stdin.read()
print("a warning", file=sys.stderr)
print(json.dumps({"type": "system", "subtype": "init"}), flush=True)
if "wait" in asked:
    while not os.path.exists("go"):
        time.sleep(0.02)
if "helper" in asked:
    helper = subprocess.Popen(["sleep", "86397"], start_new_session=True)
    open("helper", "w").write(str(helper.pid))
if "fail" in asked:
    sys.exit(3)

def ask(**request):
    os.chdir(os.path.dirname(os.environ["PULSE_SOCKET"]))  # a longer path is no address
    with socket.socket(socket.AF_UNIX) as there:
        there.connect("pulse.sock")
        there.sendall(json.dumps({"v": 1, **request}).encode() + b"\n")
        answer = json.loads(there.makefile().readline())
    return answer["error"]["message"] if "error" in answer else answer["item"]

told = {name: os.environ.get(name) for name in ("PULSE_TASK", "PULSE_AGENT", "KEPT_BACK")}
if token := os.environ.get("PULSE_TOKEN"):
    beat = {"kind": "task-heartbeat", "subject": os.environ["PULSE_TASK"], "data": {"token": 1}}
    told["without"], told["wrong"] = ask(op="status"), ask(op="state", token=token[:-1])
    told["status"], told["title"] = ask(op="status", token=token), ask(op="state", token=token)["value"]["title"]
    told["beat"] = ask(op="append", token=token, drafts=[beat])["events"][0]["actor"]
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": json.dumps(told), "num_turns": 2}))
"""


def settings(place: Path, **more: str) -> str:
    """An agent that is this program."""
    script = place / "agent.py"
    script.write_text(SCRIPT)
    lines = [f"{name} = {value}" for name, value in more.items()]
    return "\n".join(
        [
            "[[agent]]",
            'name = "ada"',
            'kind = "claude"',
            f'command = ["{sys.executable}", "{script}"]',
            *lines,
        ]
    )
