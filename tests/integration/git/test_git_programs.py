"""Git's ways to run programs, as a corpus: whatever a repository or staging names, Pulse runs none of it.

Each entry plants programs that leave a trace; then everything that Pulse does with a repository is done over it.
"""

import os
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.git import worker
from pulse_adapters.git.checks import RepositoryChecks
from pulse_adapters.git.repository import Repository
from pulse_core.model.errors import PulseError
from tests.integration.git.git_scene import ADA, files, git, made, promoted, template, write
from tests.long_form import sampled

LINES = [f"L{number} = 0" for number in range(20)]
EDIT = "A = '$Id$'\r\n"
ATTRIBUTES = "*.py filter=evil merge=evil diff=evil ident text eol=lf\n"
VARIABLES = "SSH SSH_COMMAND EXTERNAL_DIFF EDITOR SEQUENCE_EDITOR PAGER ASKPASS PROXY_COMMAND"
HOOKS = """
    applypatch-msg commit-msg fsmonitor-watchman p4-changelist p4-pre-submit post-applypatch post-checkout post-commit
    post-index-change post-merge post-receive post-rewrite post-update pre-applypatch pre-auto-gc pre-commit
    pre-merge-commit pre-push pre-rebase pre-receive prepare-commit-msg proc-receive push-to-checkout
    reference-transaction sendemail-validate update
"""


@dataclass(frozen=True)
class Scene:
    """A home whose staging and main have parted, with edits in both folders; and programs that leave traces."""

    home: Path

    @property
    def folder(self) -> Path:
        """The repository itself."""
        return self.home / "engine" / ".git"

    @property
    def staging(self) -> Path:
        """The worktree for experiments."""
        return self.home / "staging"

    @property
    def traces(self) -> set[str]:
        """The programs that were run."""
        return {one.name for one in self.home.parent.glob("traces/*")}

    def program(self, name: str) -> str:
        """A program that leaves a trace of this name."""
        path = self.home.parent / "programs" / name
        (self.home.parent / "traces").mkdir(exist_ok=True)
        write(path, f"#!/bin/sh\ntouch '{self.home.parent}/traces/{name}'\nexit 1\n")
        path.chmod(0o755)
        return str(path)

    def settings(self, text: str, file: Path | None = None) -> None:
        """More lines of the repository's settings, or of another file; `PROGRAM-name` is one."""
        words = text.split("PROGRAM-")
        whole = words[0]
        for word in words[1:]:
            name = word.split()[0].rstrip('";')
            whole += self.program(name) + word[len(name) :]
        path = file or self.folder / "config"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as opened:
            opened.write(whole)

    def nested(self, at: Path) -> Path:
        """Another repository, armed, with a commit and an edit."""
        write(at / "a.py", "A = 1\n")
        git(at, "init", "--quiet", "--template=", "--initial-branch=staging")
        git(at, "add", "--all")
        git(at, "commit", "--quiet", "-m", "nested")
        write(at / "a.py", "A = 2\n")  # as long as before, so that git must look inside
        self.settings(ARMED, at / ".git" / "config")
        write(at / ".git" / "info" / "attributes", ATTRIBUTES)
        return at


FILTERS = """
[filter "evil"]
    clean = PROGRAM-clean
    smudge = PROGRAM-smudge
    required = true
[merge "evil"]
    driver = PROGRAM-merge %O %A %B
[diff "evil"]
    command = PROGRAM-command
    textconv = PROGRAM-textconv
[diff]
    external = PROGRAM-external
"""
MONITOR = "[core]\n\tfsmonitor = PROGRAM-fsmonitor\n"
ARMED = f"{FILTERS}{MONITOR}"
PROGRAMS = """
[core]
    pager = PROGRAM-pager
    editor = PROGRAM-editor
    sshCommand = PROGRAM-ssh
    askPass = PROGRAM-askpass
    gitProxy = PROGRAM-proxy
    alternateRefsCommand = PROGRAM-alternates
[sequence]
    editor = PROGRAM-sequence
[credential]
    helper = !PROGRAM-credential
[commit]
    gpgSign = true
[tag]
    gpgSign = true
[log]
    showSignature = true
[gpg]
    program = PROGRAM-gpg
[gpg "ssh"]
    program = PROGRAM-gpgssh
    defaultKeyCommand = PROGRAM-sshkey
[user]
    signingKey = somebody
[alias]
    status = !PROGRAM-status
    merge-tree = !PROGRAM-aliased
[trailer "evil"]
    key = Evil
    cmd = PROGRAM-trailer
    command = PROGRAM-oldtrailer
[interactive]
    diffFilter = PROGRAM-difffilter
[pager]
    diff = PROGRAM-pagerdiff
    log = PROGRAM-pagerlog
[uploadpack]
    packObjectsHook = PROGRAM-packobjects
[gc]
    auto = 1
    recentObjectsHook = PROGRAM-recent
[maintenance]
    auto = true
[merge]
    tool = evil
    autoStash = true
[mergetool "evil"]
    cmd = PROGRAM-mergetool
[diff]
    tool = evil
[difftool "evil"]
    cmd = PROGRAM-difftool
[tar "evil"]
    command = PROGRAM-tar
[submodule]
    recurse = true
    active = .
[submodule "sub"]
    active = true
    update = !PROGRAM-update
    url = ext::PROGRAM-submodule
[protocol]
    allow = always
[protocol "ext"]
    allow = always
"""


def hooks(scene: Scene) -> None:
    for name in HOOKS.split():
        for folder in (scene.folder, scene.folder / "worktrees" / "staging", scene.home / "set"):
            (folder / "hooks").mkdir(parents=True, exist_ok=True)
            shutil.copy(scene.program(name), folder / "hooks" / name)
    scene.settings(f"[core]\n\thooksPath = {scene.home}/set/hooks\n")


def monitor(scene: Scene) -> None:
    scene.settings(MONITOR)


def other_programs(scene: Scene) -> None:
    scene.settings(PROGRAMS)


def attributes_beside(scene: Scene) -> None:
    scene.settings(FILTERS)
    write(scene.folder / "info" / "attributes", ATTRIBUTES)


def attributes_elsewhere(scene: Scene) -> None:
    write(scene.home / "attributes", ATTRIBUTES)
    scene.settings(f"{FILTERS}[core]\n\tattributesFile = {scene.home}/attributes\n")


def attributes_committed(scene: Scene) -> None:
    scene.settings(FILTERS)
    write(scene.staging / ".gitattributes", ATTRIBUTES)


def odd_name(scene: Scene) -> None:
    scene.settings(FILTERS.replace("evil", "a=b.ü"))
    write(scene.staging / ".gitattributes", ATTRIBUTES.replace("evil", "a=b.ü"))


def process_filter(scene: Scene) -> None:
    scene.settings('[filter "evil"]\n\tprocess = PROGRAM-process\n\trequired = true\n')
    write(scene.staging / ".gitattributes", ATTRIBUTES)


def included(scene: Scene) -> None:
    write(scene.staging / ".gitattributes", ATTRIBUTES)
    for number, key in enumerate(
        ("include", f'includeIf "gitdir:{scene.home}/"', 'includeIf "onbranch:staging"')
    ):
        file = scene.home.parent / f"more-{number}"
        scene.settings(ARMED.replace("PROGRAM-", f"PROGRAM-{number}"), file)
        scene.settings(f"[{key}]\n\tpath = {file}\n")


def of_one_worktree(scene: Scene) -> None:
    write(scene.staging / ".gitattributes", ATTRIBUTES)
    scene.settings("[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tworktreeConfig = true\n")
    scene.settings(ARMED, scene.folder / "worktrees" / "staging" / "config.worktree")
    scene.settings(ARMED, scene.folder / "config.worktree")


def sent_elsewhere(scene: Scene) -> None:
    scene.settings(f"{ARMED}[core]\n\tworktree = {scene.nested(scene.home.parent / 'elsewhere')}\n")
    write(scene.staging / ".gitattributes", ATTRIBUTES)


def promisor(scene: Scene) -> None:
    scene.settings(
        "[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tpartialClone = far\n[protocol]\n\tallow = always\n"
        '[protocol "ext"]\n\tallow = always\n[remote "far"]\n\turl = ext::PROGRAM-fetch\n\tpromisor = true\n'
        "\tuploadpack = PROGRAM-uploadpack\n"
    )
    oid = git(scene.staging, "rev-parse", "HEAD:rules/long.py")
    (scene.folder / "objects" / oid[:2] / oid[2:]).unlink()


def alternates(scene: Scene) -> None:
    other = scene.nested(scene.home.parent / "elsewhere")
    write(scene.folder / "objects" / "info" / "alternates", f"{other}/.git/objects\n")
    scene.settings("[core]\n\talternateRefsCommand = PROGRAM-refs\n")


def replaced(scene: Scene) -> None:
    main = git(scene.home / "engine", "rev-parse", "main")
    git(scene.home / "engine", "replace", main, f"{main}~1")


def another_above(scene: Scene) -> None:
    scene.nested(scene.home)


def nested_untracked(scene: Scene) -> None:
    scene.nested(scene.staging / "sub")


def nested_in_the_index(scene: Scene) -> None:
    commit = git(scene.nested(scene.staging / "sub"), "rev-parse", "HEAD")
    git(scene.staging, "update-index", "--add", "--cacheinfo", f"160000,{commit},sub")
    write(scene.staging / ".gitmodules", '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n')


def nested_in_a_commit(scene: Scene) -> None:
    nested_in_the_index(scene)
    git(scene.staging, "commit", "--quiet", "-m", "with another repository")


def linked_in_a_commit(scene: Scene) -> None:
    nested_in_a_commit(scene)
    (scene.staging / "sub").rename(scene.home.parent / "elsewhere")
    (scene.staging / "sub").mkdir()


def nested_in_a_folder_of_ours(scene: Scene) -> None:
    scene.nested(scene.staging / "rules")


def nested_by_a_file(scene: Scene) -> None:
    other = scene.nested(scene.home.parent / "elsewhere")
    write(scene.staging / "sub" / ".git", f"gitdir: {other}/.git\n")
    write(scene.staging / "sub" / "a.py", "A = 2\n")


def nested_without_a_commit(scene: Scene) -> None:
    scene.nested(scene.staging / "sub")
    shutil.rmtree(scene.staging / "sub" / ".git" / "refs" / "heads")
    (scene.staging / "sub" / ".git" / "refs" / "heads").mkdir()


def nested_and_ignored(scene: Scene) -> None:
    scene.nested(scene.staging / "sub")
    write(scene.staging / ".gitignore", "__pycache__/\nsub/\n")


def nested_and_bare(scene: Scene) -> None:
    scene.nested(scene.home.parent / "elsewhere")
    shutil.copytree(scene.home.parent / "elsewhere" / ".git", scene.staging / "bare")


def nested_in_the_engine(scene: Scene) -> None:
    commit = git(scene.nested(scene.home / "engine" / "sub"), "rev-parse", "HEAD")
    git(scene.home / "engine", "update-index", "--add", "--cacheinfo", f"160000,{commit},sub")


def staging_is_another(scene: Scene) -> None:
    (scene.staging / ".git").unlink()
    scene.nested(scene.staging)


def staging_is_a_pipe(scene: Scene) -> None:
    (scene.staging / ".git").unlink()
    os.mkfifo(scene.staging / ".git")


def staging_leads_elsewhere(scene: Scene) -> None:
    other = scene.nested(scene.home.parent / "elsewhere")
    write(scene.staging / ".git", f"gitdir: {other}/.git\n")


def staging_is_a_link(scene: Scene) -> None:
    scene.nested(scene.home.parent / "elsewhere")
    (scene.staging / ".git").unlink()
    (scene.staging / ".git").symlink_to(scene.home.parent / "elsewhere" / ".git")


def settings_lie_elsewhere(scene: Scene) -> None:
    other = scene.nested(scene.home.parent / "elsewhere")
    write(scene.folder / "worktrees" / "staging" / "commondir", f"{other}/.git\n")


def our_settings_are_others(scene: Scene) -> None:
    write(scene.staging / ".gitattributes", ATTRIBUTES)
    scene.settings(ARMED, scene.folder / "pulse" / "config")
    write(scene.folder / "pulse" / "info" / "attributes", ATTRIBUTES)


def in_the_environment(scene: Scene) -> None:
    scene.settings(ARMED + PROGRAMS, scene.home.parent / ".gitconfig")
    write(scene.staging / ".gitattributes", ATTRIBUTES)


NESTED = "staging/(sub|rules) is another repository, and none can be part of the engine; move it away, "
ELSEWHERE = "staging has lost its link to .*engine; move it away"
CORPUS: Mapping[Callable[[Scene], None], str] = {
    hooks: "",
    monitor: "",
    other_programs: "",
    attributes_beside: "",
    attributes_elsewhere: "",
    attributes_committed: "",
    odd_name: "",
    process_filter: "",
    included: "",
    of_one_worktree: "",
    sent_elsewhere: "",
    promisor: "invalid object .* for 'rules/long.py'",
    alternates: "",
    replaced: "",
    another_above: "",
    nested_untracked: f"{NESTED}or name it in .gitignore",
    nested_in_the_index: NESTED,
    nested_in_a_commit: NESTED,
    linked_in_a_commit: f"{NESTED}take it out with: git -C .*staging rm --cached sub",
    nested_in_a_folder_of_ours: NESTED,
    nested_by_a_file: NESTED,
    nested_without_a_commit: NESTED,
    nested_and_ignored: "",
    nested_and_bare: "",
    nested_in_the_engine: "",
    staging_is_another: ELSEWHERE,
    staging_leads_elsewhere: ELSEWHERE,
    staging_is_a_pipe: ELSEWHERE,
    staging_is_a_link: ELSEWHERE,
    settings_lie_elsewhere: "",
    our_settings_are_others: "",
    in_the_environment: "",
}
"""What Pulse says instead of promoting; nothing where it promotes."""


@pytest.fixture(scope="session")
def parted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose staging and main changed the same file."""
    repository = made(tmp_path_factory.mktemp("parted"))
    promoted(repository, "rules/long.py", "\n".join(LINES))
    for at, lines in (("engine", ["E = 1", *LINES[1:]]), ("staging", [*LINES[:-1], "S = 1"])):
        write(repository.home / at / "rules" / "long.py", "\n".join(lines))
        git(repository.home / at, "commit", "--quiet", "-am", "by hand")
    return repository.home


@pytest.fixture
def scene(parted: Path, tmp_path: Path) -> Scene:
    home = Path(shutil.copytree(parted, tmp_path / "home", symlinks=True))
    folder = home / "engine" / ".git" / "worktrees" / "staging"
    write(home / "staging" / ".git", f"gitdir: {folder}\n")
    write(folder / "gitdir", f"{home}/staging/.git\n")
    template(tmp_path / "template")
    (home / "staging" / "rules" / "a.py").write_bytes(EDIT.encode())
    write(home / "engine" / "rules" / "stray.py", "A = 1\n")
    return Scene(home)


def refusal(what: Callable[[], object]) -> str:
    """What Pulse says against it."""
    try:
        what()
    except PulseError as error:
        return str(error)
    return ""


def promote(repository: Repository) -> str:
    """What the commands of a promote do: its commit, which is main then."""
    repository.commit_staging("edited", ADA)
    commit, main = repository.candidate("promote", ADA), repository.head()
    repository.returning(commit)
    ask(repository, "ensure", commit)
    repository.diff(main, commit)
    ask(repository, "point-main", commit, main)
    return commit


def roll_back(repository: Repository, to: str) -> None:
    """What the daemon does to go back."""
    main = repository.head()
    revision, _ = ask(repository, "going-back", to, main, "it harms")
    ask(repository, "point-main", revision.commit, main)


def ask(repository: Repository, verb: str, *words: str) -> Any:
    """What the git worker answers the daemon."""
    return worker.answer({"home": str(repository.home), "verb": verb, "words": words})


def look(repository: Repository) -> None:
    """What `engine status`, `log`, `show` and `doctor` do."""
    with suppress(PulseError):
        list(repository.settled_staging().advice())
    list(RepositoryChecks(repository.home, lambda: "").engine())
    repository.resolve(repository.recent_commits(5)[0][:9])


@pytest.mark.parametrize("plant", sampled(CORPUS, 4), ids=lambda plant: plant.__name__)
def test_no_program_that_a_repository_names_is_run(
    scene: Scene, plant: Callable[[Scene], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(scene)
    if plant is in_the_environment:
        poison_environment(scene, monkeypatch)
    repository = Repository(scene.home)
    first, said = repository.head(), CORPUS[plant]
    look(repository)
    refused = refusal(lambda: Repository.create(scene.home, scene.home.parent / "template", ADA))
    refused = refused or refusal(lambda: promote(repository))
    assert bool(refused) == bool(said), refused
    assert re.search(said, refused)
    if refused:
        assert repository.head() == first
    else:
        laid = Path(repository.ensure(repository.head()).path)
        assert (laid / "rules" / "long.py").read_text() == "\n".join(["E = 1", *LINES[1:-1], "S = 1"])
        assert (laid / "rules" / "a.py").read_bytes() == EDIT.encode()
    write(scene.staging / "rules" / "a.py", "A = 3\n")
    roll_back(repository, git_parent(repository, first))
    laid = Path(repository.ensure(repository.head()).path)
    assert (laid / "rules" / "long.py").read_text() == "\n".join(LINES)
    look(repository)
    refusal(repository.mend)
    refusal(lambda: repository.commit_staging("edited again", ADA))
    repository.keep_branch("kept", first)
    assert scene.traces == set()


def git_parent(repository: Repository, commit: str) -> str:
    """The commit of main before this one."""
    commits = repository.recent_commits(9)
    return commits[commits.index(commit) + 1]


def poison_environment(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables that programs or settings can be given by."""
    place = scene.home.parent
    named = {f"GIT_{name}": scene.program(name.lower()) for name in VARIABLES.split()}
    sent = {"GIT_TRACE": f"{place}/traces/trace", "GIT_EXEC_PATH": f"{place}/programs", "HOME": str(place)}
    counted = {"COUNT": "1", "KEY_0": "core.fsmonitor", "VALUE_0": scene.program("counted")}
    given = {
        "GIT_CONFIG_PARAMETERS": f"'core.fsmonitor={scene.program('given')}'",
        "XDG_CONFIG_HOME": str(place),
    }
    for name, value in {
        **named,
        **sent,
        **given,
        **{f"GIT_CONFIG_{key}": value for key, value in counted.items()},
    }.items():
        monkeypatch.setenv(name, value)


def test_a_person_s_own_git_would_run_them(scene: Scene) -> None:
    def by_hand(*words: str) -> None:
        with suppress(AssertionError):
            git(scene.staging, *words)

    hooks(scene)
    monitor(scene)
    by_hand("commit", "--allow-empty", "-m", "x")
    attributes_committed(scene)
    by_hand("add", "--all")
    by_hand("diff", "main", "staging")
    assert {"pre-commit", "fsmonitor", "clean", "smudge"} <= scene.traces


def test_the_engines_git_is_called_in_one_place() -> None:
    """The repositories of projects are their users' own, with their settings: `owned_git` runs git there as they."""
    root = Path(worker.__file__).parents[2]
    sources = (
        path
        for part in ("pulse_core", "pulse_adapters", "upulse_cli")
        for path in root.glob(f"{part}/**/*.py")
        if path.name != "owned_git.py"
    )
    assert [path.name for path in sources if re.search(r'"git", |git\.cmd import', path.read_text())] == [
        "git_command.py"
    ]


def test_a_repository_whose_names_are_longer_is_one_too(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write(home / "engine" / "engine.py", "RULES = []\n")
    git(home / "engine", "init", "--quiet", "--initial-branch=main", "--object-format=sha256")
    git(home / "engine", "add", "--all")
    git(home / "engine", "commit", "--quiet", "-m", "by hand")
    repository, _ = Repository.create(home, template(tmp_path / "template"), ADA)
    write(home / "staging" / "rules" / "a.py", "A = 1\n")
    (home / "staging" / "engine.py").unlink()
    commit = promote(repository)
    assert len(commit) == 64
    assert files(home / "engine") == {"rules/a.py": "A = 1\n"}
