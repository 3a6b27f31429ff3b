"""A copy of the tree, in which a capability is added or removed as a person would do it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("pulse_core", "pulse_adapters", "upulse_cli")
PLACES = ("pulse_core/{}", "pulse_adapters/{}", "upulse_cli/capabilities/{}", "tests/unit/{}")
LIST = Path("pulse_core/capabilities.py")
PATIENCE = 180
"""Seconds that one program may take on a busy machine."""

IMPORT_ALL = f"""
import importlib, pkgutil
for root in {PACKAGES!r}:
    package = importlib.import_module(root)
    for found in pkgutil.walk_packages(package.__path__, root + "."):
        if not found.name.endswith(".__main__"):
            importlib.import_module(found.name)
"""


class Tree:
    """The copy, and programs run in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        for name in (*PACKAGES, "engine_template", "tests"):
            shutil.copytree(ROOT / name, path / name, symlinks=True)
        shutil.copy2(ROOT / "pyproject.toml", path)

    def remove(self, capability: str) -> None:
        """Delete the capability's line and its folders."""
        file = self.path / LIST
        with_it = file.read_text()
        without = with_it.replace(f'    "{capability}",\n', "")
        assert without != with_it
        file.write_text(without)
        for place in PLACES:
            shutil.rmtree(self.path / place.format(capability), ignore_errors=True)

    def add(self, capability: str, files: dict[str, str]) -> None:
        """Write its files, and its line behind the others."""
        for name, text in files.items():
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        listed = (self.path / LIST).read_text()
        longer = re.sub(r"(CAPABILITIES: .*?)(^\))", rf'\1    "{capability}",\n\2', listed, flags=re.S | re.M)
        assert longer != listed
        (self.path / LIST).write_text(longer)

    def run(self, *words: str, home: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Python with these words, in the copy."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.path),
            # else a run in it would clean up first what earlier ones have left
            "PYTEST_DEBUG_TEMPROOT": str(self.path.parent),
            **({"UPULSE_HOME": str(home)} if home else {}),
        }
        return subprocess.run(
            [sys.executable, *words],
            cwd=self.path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def upulse(self, home: Path, *words: str) -> str:
        """What the command says; it must succeed."""
        done = self.run("-m", "upulse_cli", *words, home=home)
        assert done.returncode == 0, done.stderr
        return done.stdout
