"""What a repository's own settings would have run is not run by Pulse, and does not stop it either."""

from pathlib import Path

import pytest

from pulse_adapters.git.errors import GitFailed, MergeConflict
from pulse_adapters.git.git_command import PULSE
from pulse_adapters.git.repository import Repository
from tests.integration.git.git_scene import ADA, FILES, edited, files, git, laid_out, made, promoted, write

NAMES = ("evil", "a=b.c", "ünï")
ATTRIBUTES = "*.py filter={0} merge={0} diff={0} ident\n"


def armed(tmp_path: Path, name: str) -> tuple[Repository, Path]:
    """A repository whose every file is filtered, merged and shown by a program that leaves a trace, and then fails."""
    repository, trace = made(tmp_path), tmp_path / "trace"
    write(tmp_path / "program", f"#!/bin/sh\necho $1 >> {trace}\nexit 1\n")
    (tmp_path / "program").chmod(0o755)
    engine = repository.home / "engine"
    for key in ("clean", "smudge", "process"):
        git(engine, "config", f"filter.{name}.{key}", f"{tmp_path}/program {key}")
    git(engine, "config", f"filter.{name}.required", "true")
    git(engine, "config", f"merge.{name}.driver", f"{tmp_path}/program merge")
    for key in ("command", "textconv"):
        git(engine, "config", f"diff.{name}.{key}", f"{tmp_path}/program {key}")
    git(engine, "config", "diff.external", f"{tmp_path}/program external")
    return repository, trace


@pytest.mark.parametrize("where", [".gitattributes", "info/attributes", "core.attributesFile"])
@pytest.mark.parametrize("name", NAMES)
def test_no_program_of_the_repositorys_settings_is_run(tmp_path: Path, name: str, where: str) -> None:
    repository, trace = armed(tmp_path, name)
    home, first = repository.home, repository.head()
    text = ATTRIBUTES.format(name)
    if where == ".gitattributes":
        edited(repository, where, text)
    elif where == "info/attributes":
        write(home / "engine" / ".git" / where, text)
    else:
        write(tmp_path / "attributes", text)
        git(home / "engine", "config", where, str(tmp_path / "attributes"))
    commit = promoted(repository, "rules/a.py", "A = '$Id$'\n")
    write(home / "staging" / "rules" / "a.py", "A = 2\n")
    folder = laid_out(repository, commit)
    repository.diff(first, commit)
    repository.staging()
    repository.point_main(repository.reverting(first, "back", PULSE), commit)
    repository.mend()
    repository.commit_staging("edited", ADA)
    assert not trace.exists()
    assert files(folder)["engine.py"] == FILES["engine.py"]


def test_a_person_s_own_git_would_run_them(tmp_path: Path) -> None:
    repository, trace = armed(tmp_path, "evil")
    write(repository.home / "staging" / ".gitattributes", ATTRIBUTES.format("evil"))
    write(repository.home / "staging" / "rules" / "a.py", "A = 1\n")
    with pytest.raises(AssertionError, match="hung up"):
        git(repository.home / "staging", "add", "--all")
    assert "process" in trace.read_text()


def test_files_are_merged_by_gits_own_way_instead(tmp_path: Path) -> None:
    repository, trace = armed(tmp_path, "evil")
    edited(repository, ".gitattributes", ATTRIBUTES.format("evil"))
    lines = [f"L{number} = 0" for number in range(20)]
    promoted(repository, "rules/long.py", "\n".join(lines))
    for at, one in (("engine", ["E = 1", *lines[1:]]), ("staging", [*lines[:-1], "S = 1"])):
        write(repository.home / at / "rules" / "long.py", "\n".join(one))
    repository.commit_staging("mine", ADA)
    for words in (("add", "--all"), ("commit", "--quiet", "-m", "by hand")):
        git(repository.home / "engine", "-c", "filter.evil.required=false", "-c", "filter.evil.process=",
            "-c", "filter.evil.clean=", *words)  # fmt: skip
    candidate = repository.candidate("both", ADA)
    merged = (laid_out(repository, candidate) / "rules" / "long.py").read_text()
    assert merged == "\n".join(["E = 1", *lines[1:-1], "S = 1"])
    edited(repository, "rules/long.py", "\n".join(["other", *lines[1:]]))
    with pytest.raises(MergeConflict, match=r"rules/long\.py"):
        repository.candidate("too much", ADA)
    assert not trace.exists()


def test_a_filter_that_is_set_later_or_in_another_file_is_seen(tmp_path: Path) -> None:
    repository, trace = made(tmp_path), tmp_path / "trace"
    edited(repository, ".gitattributes", "*.py filter=late\n")
    engine = repository.home / "engine"
    git(engine, "config", "include.path", str(tmp_path / "more"))
    for number in (1, 2):
        write(tmp_path / "more", f'[filter "late"]\n\tclean = "touch {trace}; cat; #{number}"\n')
        edited(repository, "rules/a.py", f"A = {number}\n")
    git(engine, "config", "extensions.worktreeConfig", "true")
    git(repository.home / "staging", "config", "--worktree", "filter.late.clean", f"touch {trace}; cat")
    edited(repository, "rules/a.py", "A = 3\n")
    assert not trace.exists()


def test_a_repository_that_sends_git_elsewhere_is_refused(tmp_path: Path) -> None:
    repository = made(tmp_path)
    git(repository.home / "engine", "config", "core.worktree", str(tmp_path))
    with pytest.raises(GitFailed, match=r"core\.worktree"):
        repository.head()
