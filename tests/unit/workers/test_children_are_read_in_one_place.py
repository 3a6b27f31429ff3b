"""What a child says is decoded by the workers' library alone, whose bounds hold for all: nobody who hears one decodes."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[3]
HEARS = {f"pulse_adapters.workers.{name}" for name in ("conversation", "host_process", "worker")}
DECODES = {"from_json", "loads", "raw_decode", "validate_json", "model_validate_json", "literal_eval", "eval"}
CHECKS = {"pulse_adapters/rule_host/replies.py"}
"""Whether the value of a projection is JSON, which is one bounded text of a message that was decoded."""


def test_nobody_who_hears_a_child_decodes_what_it_says() -> None:
    heard = []
    for package in ("pulse_core", "pulse_adapters", "upulse_cli"):
        for path in sorted((ROOT / package).rglob("*.py")):
            nodes = list(ast.walk(ast.parse(path.read_text())))
            if {node.module for node in nodes if isinstance(node, ast.ImportFrom)}.isdisjoint(HEARS):
                continue
            heard.append(str(path.relative_to(ROOT)))
            names = {getattr(one, "attr", getattr(one, "id", "")) for one in nodes}
            decodes = names & DECODES if heard[-1] not in CHECKS else ()
            assert not decodes, f"{heard[-1]} decodes: pulse_adapters.workers.messages does, with bounds"
    assert {"pulse_adapters/action_host/process.py", "pulse_adapters/rule_host/process.py"} <= {*heard}
    assert len(heard) > 10
