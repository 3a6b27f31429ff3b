"""What runs in the daemon begins threads by `threads` alone: elsewhere a missing one would be an error that ends it."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[3]
BEGIN = ("Thread", "ThreadPoolExecutor")


def test_threads_and_pools_are_made_by_one_module() -> None:
    found = []
    for package in ("pulse_core", "pulse_adapters", "upulse_cli"):
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text()
            for node in ast.walk(ast.parse(text if "Thread" in text else "")):
                if isinstance(node, ast.Call):
                    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                    if name in BEGIN:
                        found.append(str(path.relative_to(ROOT)))
    assert found == ["pulse_adapters/workers/threads.py"]
