"""A copy of the tree, in which a capability is added or removed as a person would do it."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("pulse_core", "pulse_adapters", "upulse_cli")
PLACES = ("pulse_core/{}", "pulse_adapters/{}", "upulse_cli/capabilities/{}", "tests/unit/{}")
LIST = Path("pulse_core/capabilities.py")
PATIENCE = 180
"""Seconds that one program may take on a busy machine."""

IMPORTER = f"""
import importlib, json, os, pkgutil, sys, traceback

def import_all():
    for root in {PACKAGES!r}:
        package = importlib.import_module(root)
        for found in pkgutil.walk_packages(package.__path__, root + "."):
            if not found.name.endswith(".__main__"):
                importlib.import_module(found.name)

def use(tree, home):
    for name in [name for name in sys.modules if name.partition(".")[0] in {PACKAGES!r}]:
        del sys.modules[name]
    sys.path.insert(0, tree)
    os.chdir(tree)
    os.environ["UPULSE_HOME"] = home
    import_all()
    from upulse_cli.__main__ import main
    assert main.__code__.co_filename.startswith(tree)
    assert main(["init"]) == 0
    assert main(["status"]) == 0

import_all()
for line in sys.stdin:
    sys.stdout.flush()
    if not (child := os.fork()):
        os.dup2(1, 2)
        try:
            use(*json.loads(line))
            code = 0
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print("exit", code, flush=True)
"""
"""A program that imports all that there is, and then for each line, `[TREE, HOME]`, does the same in that tree, where it
makes the home and shows its status, too: in a process that has only the packages of others loaded, which take longest."""


class Importer:
    """The running program."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", IMPORTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def use(self, tree: Path, home: Path) -> str:
        """What a tree and its command line say once all of it was imported; it must succeed."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([str(tree), str(home)]) + "\n")
        self._process.stdin.flush()
        said = ""
        with bounded(self._process):
            for line in self._process.stdout:
                if line.startswith("exit "):
                    assert line == "exit 0\n", said
                    return said
                said += line
        raise AssertionError(f"the program has ended: {said}")

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate(timeout=PATIENCE)


@contextmanager
def bounded(process: subprocess.Popen[str]) -> Iterator[None]:
    """Kill a process that is not done with the block in time: what is read from it then ends."""
    late = threading.Timer(PATIENCE, process.kill)
    late.start()
    try:
        yield
    finally:
        late.cancel()


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
