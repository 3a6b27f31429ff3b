"""`upulse new`: a module, its test and its line in engine.py, which a person may have written as they like."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pulse_adapters.git.create_repository import template_folder
from pulse_adapters.git.edit_engine_list import CannotEdit, add_to_list, remove_from_list
from pulse_adapters.git.repository import Repository
from pulse_adapters.git.scaffold import SHELVES, scaffold
from pulse_core.model.errors import PulseError, UnknownName
from tests.integration.git.git_scene import files, git, is_clean, laid_out, write
from tests.types_cache import kept

ADA = "Ada Lovelace <ada@example.org>"


def engine(place: Path) -> Path:
    """A folder with the template's files."""
    return Path(
        shutil.copytree(
            template_folder(), place / "engine", ignore=shutil.ignore_patterns("__pycache__", ".*_cache")
        )
    )


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where the type checker keeps what it knows of pulse_core, and of pydantic."""
    return str(shutil.copytree(kept(), tmp_path_factory.mktemp("typed") / "mypy"))


def run(at: Path, *words: str) -> None:
    """A tool of Python's, in a folder; it must find nothing wrong."""
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"}
    argv: Sequence[str] = [sys.executable, "-m", *words]
    ran = subprocess.run(argv, cwd=at, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_template_passes_its_own_tests_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    repository, _ = Repository.create(tmp_path / "home", template_folder(), ADA)
    path = laid_out(repository, repository.head())
    before = set(path.rglob("*"))
    run(path, "pytest", "-p", "no:asyncio", "-p", "no:randomly")
    assert set(path.rglob("*")) == before
    assert is_clean(repository.home / "engine")
    assert "engine.py" in files(path)
    assert not {name for name in files(path) if "cache" in name}


def test_the_template_is_typed_and_tidy(tmp_path: Path, typed: str) -> None:
    folder = engine(tmp_path)
    run(folder, "mypy", "--strict", "--cache-dir", typed)
    run(folder, "ruff", "check", "--no-cache", ".")
    run(folder, "ruff", "format", "--no-cache", "--check", ".")


def test_the_template_imports_nothing_but_pulse_core(tmp_path: Path) -> None:
    allowed = {"pulse_core", "pulse_core.testing", "pytest"}
    own = {"engine", "rules", "projections", "watchers", "executors"}
    for name, text in files(engine(tmp_path)).items():
        if name.endswith(".py"):
            imported = {
                line.split()[1] for line in text.splitlines() if line.startswith(("import ", "from "))
            }
            strange = {
                one for one in imported - allowed if one.split(".")[0] not in own | sys.stdlib_module_names
            }
            assert not strange, name


def test_everything_that_is_scaffolded_passes_its_test_and_is_typed(tmp_path: Path, typed: str) -> None:
    folder = engine(tmp_path)
    for what, shelf in SHELVES.items():
        written = scaffold(folder, what, f"my-new-{what}")
        names = [f"{shelf.folder}/my_new_{what}.py", f"tests/test_my_new_{what}.py", "engine.py"]
        assert [str(path.relative_to(folder)) for path in written] == names
    run(folder, "pytest", "-p", "no:asyncio", "-p", "no:randomly")
    run(folder, "mypy", "--strict", "--cache-dir", typed)
    run(folder, "ruff", "check", "--no-cache", ".")
    run(folder, "ruff", "format", "--no-cache", "--check", ".")
    program = (
        "import engine; print(engine.RULES[-1].__name__, list(engine.PROJECTIONS)[-1],"
        " engine.WATCHERS[0].key, engine.EXECUTORS[0].action)"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True, timeout=60
    )
    assert said.stdout.split() == ["my_new_rule", "my_new_projection", "my-new-watcher", "my-new-executor"]


@pytest.mark.parametrize(
    "name", ["", "1st", "Rule", "a b", "a__b", "_a", "a-", "class", "größe", "a.b", "../a", "x" * 61]
)
def test_a_name_is_a_name(tmp_path: Path, name: str) -> None:
    folder = engine(tmp_path)
    before = files(folder)
    with pytest.raises(PulseError, match="can't be a name here"):
        scaffold(folder, "rule", name)
    assert files(folder) == before


def test_a_kind_is_a_kind(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean 'rule'"):
        scaffold(tmp_path, "rul", "a")


@pytest.mark.parametrize("steps", [1, 2])
def test_one_that_was_killed_is_finished_by_the_next(tmp_path: Path, steps: int) -> None:
    folder, whole = engine(tmp_path), engine(tmp_path / "whole")
    for path in scaffold(whole, "rule", "mine")[:steps]:
        write(folder / path.relative_to(whole), path.read_text())
    assert [path.name for path in scaffold(folder, "rule", "mine")] == [
        "mine.py",
        "test_mine.py",
        "engine.py",
    ]
    assert files(folder) == files(whole)
    with pytest.raises(PulseError, match="is there already; take another name"):
        scaffold(folder, "rule", "mine")


@pytest.mark.parametrize("there", ["rules/mine.py", "tests/test_mine.py"])
def test_what_is_there_is_never_overwritten(tmp_path: Path, there: str) -> None:
    folder = engine(tmp_path)
    write(folder / there, "precious\n")
    before = files(folder)
    with pytest.raises(PulseError, match="is there already; take another name"):
        scaffold(folder, "rule", "mine")
    assert files(folder) == before


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("from pulse_core import Rule\nRULES = make()\n", "RULES is not written as a list in brackets"),
        ("from pulse_core import Rule\n", "it has no RULES"),
        ("RULES = []\n", "it imports nothing"),
        ("from pulse_core import Rule\nRULES = [\n", "it is no Python"),
        ("from pulse_core import Rule as mine\nRULES = []\n", "mine is something else there already"),
        ("from pulse_core import Rule\nRULES = [(\n    Rule\n)]\n", "too hard to add to"),
        (None, "No such file"),
    ],
)  # fmt: skip
def test_an_engine_that_can_not_be_edited_stays_and_the_lines_are_said(
    tmp_path: Path, text: str | None, why: str
) -> None:
    if text is not None:
        write(tmp_path / "engine.py", text)
    with pytest.raises(PulseError) as error:
        scaffold(tmp_path, "rule", "mine")
    assert why in str(error.value)
    assert "add to it: from rules.mine import mine, and in RULES: mine" in str(error.value)
    assert (tmp_path / "rules" / "mine.py").exists()
    assert (tmp_path / "tests" / "test_mine.py").exists()
    assert text is None or (tmp_path / "engine.py").read_text() == text


HEAD = "from pulse_core import Rule\n\nfrom rules.a import a\nfrom rules.z import z\n\n"
NEW = HEAD.replace("from rules.z", "from rules.mine import mine\nfrom rules.z")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("RULES = []\n", "RULES = [mine]\n"),
        ("RULES: list[Rule] = [a, z]  # both\n", "RULES: list[Rule] = [a, z, mine]  # both\n"),
        ("RULES = [a, z,]\n", "RULES = [a, z, mine,]\n"),
        ("RULES = [\n    a,  # 'ü' first\n    z,  # last, [really]\n    # none\n]\n",
         "RULES = [\n    a,  # 'ü' first\n    z,  # last, [really]\n    mine,\n    # none\n]\n"),
        ("RULES = [\n  a,\n  z  # none, no\n]\n", "RULES = [\n  a,\n  z,  # none, no\n  mine,\n]\n"),
        ("RULES = [a,\n         z]\n", "RULES = [a,\n         z, mine]\n"),
        ("RULES = [\n]\n", "RULES = [\n    mine,\n]\n"),
        ("RULES = [  # so far\n    # none\n]", "RULES = [  # so far\n    # none\n    mine,\n]"),
        ("X = 'ü'; RULES = [a]; Y = 'ü'\n", "X = 'ü'; RULES = [a, mine]; Y = 'ü'\n"),
        ("RULES = [*more(a, z), z]\n", "RULES = [*more(a, z), z, mine]\n"),
        ("RULES = [\n    a,\n    z(\n        1,\n    ),\n]\n",
         "RULES = [\n    a,\n    z(\n        1,\n    ),\n    mine,\n]\n"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_list_is_added_to_in_the_manner_it_is_written(before: str, after: str, ends: str) -> None:
    source, wanted = (
        (head + text).replace("\n", ends).encode() for head, text in ((HEAD, before), (NEW, after))
    )
    assert add_to_list(source, "from rules.mine import mine", "mine", "RULES", "mine") == wanted


def test_a_dict_is_added_to_likewise() -> None:
    source = b"from pulse_core import Projection\n\nP = {\n    'a': Projection(0, f),  # one\n}\n"
    wanted = (
        b"from pulse_core import Projection\n\nfrom projections.b import b\n\n"
        b"P = {\n    'a': Projection(0, f),  # one\n    \"b\": b,\n}\n"
    )
    assert add_to_list(source, "from projections.b import b", "b", "P", '"b": b') == wanted


@pytest.mark.parametrize(
    ("imports", "after"),
    [
        ("import os\n", "import os\n\nfrom rules.m import m\n"),
        ("from rules.a import a\n", "from rules.a import a\nfrom rules.m import m\n"),
        ("from rules.z import (\n    z,\n)\n", "from rules.m import m\nfrom rules.z import (\n    z,\n)\n"),
        ("from rules.a import (\n    a,\n)\n", "from rules.a import (\n    a,\n)\nfrom rules.m import m\n"),
        ("from projections.z import z\n", "from projections.z import z\nfrom rules.m import m\n"),
        ("\ufeffimport os\n", "\ufeffimport os\n\nfrom rules.m import m\n"),
    ],
)  # fmt: skip
def test_an_import_stands_where_it_is_sorted(imports: str, after: str) -> None:
    source = f"{imports}\nRULES = []\n".encode()
    assert (
        add_to_list(source, "from rules.m import m", "m", "RULES", "m") == f"{after}\nRULES = [m]\n".encode()
    )


def test_a_file_in_another_encoding_is_left_alone() -> None:
    with pytest.raises(CannotEdit, match="no Python that can be read"):
        add_to_list(
            "# coding: latin-1\nimport os  # ü\nRULES = []\n".encode("latin-1"),
            "from rules.m import m",
            "m",
            "RULES",
            "m",
        )


def test_who_may_run_the_engine_stays_as_it_was(tmp_path: Path) -> None:
    folder = engine(tmp_path)
    (folder / "engine.py").chmod(0o640)
    scaffold(folder, "rule", "mine")
    assert (folder / "engine.py").stat().st_mode & 0o777 == 0o640
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    assert not [name for name in git(folder, "ls-files").split() if name.endswith(".new")]


ADDED = ("from rules.mine import mine", "mine", "RULES")


@pytest.mark.parametrize(
    ("edited", "without"),
    [
        ("RULES = [\n    calm,\n    mine,\n]\n", "RULES = [\n    calm,\n]\n"),
        ("RULES = [\n    mine,\n    # theirs\n    calm,\n]\n", "RULES = [\n    # theirs\n    calm,\n]\n"),
        ("RULES = [\n    calm,\n    mine\n]\n", "RULES = [\n    calm,\n]\n"),
        ("RULES = [calm, mine]\n", "RULES = [calm]\n"),
        ("RULES = [mine, calm]\n", "RULES = [calm]\n"),
        ("RULES = [calm, mine, *more]\n", "RULES = [calm, *more]\n"),
        ("RULES = [mine]\n", "RULES = []\n"),
        ("RULES = [calm]\n", "RULES = [calm]\n"),
        ("RULES = [calm,  # theirs\n    mine]\n", None),
        ("RULES = [calm, mine]\nmine = None\n", None),
        ("RULES = [calm, mine(3)]\n", None),
        ("RULES = [calm, mine\n", None),
        ("RULES = make(mine)\n", None),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_was_added_to_a_list_is_taken_back_from_what_a_person_has_edited(
    edited: str, without: str | None, end: str
) -> None:
    head = "from rules.calm import calm, more\n"
    source = f"{head}{ADDED[0]}\n\n{edited}".replace("\n", end).encode()
    if without is None:
        with pytest.raises(CannotEdit):
            remove_from_list(source, *ADDED)
    else:
        assert remove_from_list(source, *ADDED) == f"{head}\n{without}".replace("\n", end).encode()
