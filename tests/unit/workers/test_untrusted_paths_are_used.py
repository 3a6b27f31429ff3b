"""Whatever deletes trees, or changes owners and modes, goes through `untrusted_paths`, or is known to need it not."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
DANGEROUS = {"rmtree", "removedirs", "chown", "lchown", "chmod", "lchmod"}
OWN = "a new folder or file of ours, or one in a folder in which nobody else may change a name"
HOME = "the home, as its owner; root does that in homes of root's"
KNOWN = {
    "pulse_adapters/config/home.py": HOME,
    "pulse_adapters/engine_user/account_record.py": OWN,
    "pulse_adapters/engine_user/layout.py": OWN,
    "pulse_adapters/git/create_repository.py": HOME,
    "pulse_adapters/git/revisions.py": HOME,
    "pulse_adapters/host/leftovers.py": HOME,
    "pulse_adapters/ipc/server.py": HOME,
    "pulse_adapters/sandbox/code_checks.py": OWN,
    "pulse_adapters/sandbox/confinement.py": OWN,
    "pulse_adapters/sandbox/scratch_folder.py": OWN,
    "pulse_adapters/sandbox/tool_sandbox.py": OWN,
    "pulse_adapters/sqlite/backup/files.py": HOME,
    "pulse_adapters/sqlite/backup/restore.py": HOME,
    "pulse_adapters/sqlite/backup/swap.py": HOME,
    "pulse_adapters/sqlite/damage.py": HOME,
    "upulse_cli/wiring/demo.py": OWN,
}


def calls(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            yield node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id


def test_nobody_else_deletes_or_changes_what_a_link_may_lead_to() -> None:
    found = set()
    for package in ("pulse_core", "pulse_adapters", "upulse_cli"):
        for file in (ROOT / package).rglob("*.py"):
            name = str(file.relative_to(ROOT))
            source = file.read_text()
            if any(name in source for name in DANGEROUS) and DANGEROUS & {*calls(source)}:
                found.add(name)
    assert found == KNOWN.keys()
