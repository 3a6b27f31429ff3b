"""Break, mend, promote: after a rollback staging is what its author means, and nobody has to know git."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pulse_adapters.git.errors import MergeConflict
from pulse_adapters.git.git_command import PULSE
from pulse_adapters.git.repository import Repository
from pulse_adapters.git.update_main import MainUpdate, point_main
from pulse_core.ports.engine_repository import NothingToPromote, RejectedFiles
from tests.integration.git.git_scene import (
    ADA,
    FILES,
    Killed,
    MortalGit,
    edited,
    files,
    git,
    is_clean,
    made,
    promoted,
    write,
)
from tests.long_form import sample, sampled

EACH = sample(32, 1)
"""How many calls of git one lives longer than the last."""
HOT = "rules/hot.py"
LISTED = "RULES = ['hot']\n"


def broken(repository: Repository) -> str:
    """Main with a bad rule, its test and its line in the list."""
    for name, text in ((HOT, "BAD = 1\n"), ("tests/test_hot.py", "T = 1\n")):
        write(repository.home / "staging" / name, text)
    return promoted(repository, "engine.py", LISTED)


def taken_back(repository: Repository, to: str) -> MainUpdate:
    """Main as the daemon makes it in a rollback."""
    back = repository.reverting(to, f"Go back to {to[:12]}", PULSE)
    return repository.point_main(back, repository.head())


def promote(repository: Repository) -> str:
    """What is in staging, in force; the commit."""
    before, commit = repository.head(), repository.candidate("promote", ADA)
    assert repository.point_main(commit, before).notes == ()
    assert is_clean(repository.home / "staging")
    assert files(repository.home / "engine") == files(repository.home / "staging")
    return commit


WHOLE = {**FILES, "engine.py": LISTED, HOT: "BAD = 1\n", "tests/test_hot.py": "T = 1\n"}


def test_a_rule_that_was_mended_before_it_was_taken_back_is_promoted_with_its_line_in_the_list(
    tmp_path: Path,
) -> None:
    repository = made(tmp_path)
    good, bad = repository.head(), broken(repository)
    edited(repository, HOT, "MENDED = 1\n")
    notes = taken_back(repository, good).notes
    assert notes == tuple(repository.staging().advice())
    assert "keeps your work" in notes[0]
    assert bad[:12] in notes[0]
    commit = repository.candidate("mended", ADA)
    assert repository.returning(commit) == RejectedFiles(bad, ("engine.py", "tests/test_hot.py"), (HOT,))
    promote(repository)
    assert files(repository.home / "engine") == {**WHOLE, HOT: "MENDED = 1\n"}
    assert tuple(repository.staging().advice()) == ()


@pytest.mark.parametrize(
    ("mend", "left", "unchanged", "changed"),
    sampled([
        (lambda staging: (staging / HOT).unlink(), {HOT: None}, ("engine.py", "tests/test_hot.py"), ()),
        (lambda staging: write(staging / "engine.py", "RULES = []\n"), {"engine.py": "RULES = []\n"},
         (HOT, "tests/test_hot.py"), ()),
        (lambda staging: write(staging / "rules/other.py", "O = 1\n"), {"rules/other.py": "O = 1\n"},
         ("engine.py", HOT, "tests/test_hot.py"), ()),
        (lambda staging: write(staging / "engine.py", "RULES = ['cold']\n"), {"engine.py": "RULES = ['cold']\n"},
         (HOT, "tests/test_hot.py"), ("engine.py",)),
    ], 2),
    ids=sampled(["deleted", "as it was", "something else", "another way"], 2),
)  # fmt: skip
@pytest.mark.parametrize("is_committed", [True, False])
def test_staging_as_it_stands_is_what_is_promoted(
    tmp_path: Path,
    mend: Callable[[Path], None],
    left: dict[str, str | None],
    unchanged: tuple[str, ...],
    changed: tuple[str, ...],
    is_committed: bool,
) -> None:
    repository = made(tmp_path)
    good, bad = repository.head(), broken(repository)
    mend(repository.home / "staging")
    if is_committed:
        repository.commit_staging("mended", ADA)
    taken_back(repository, good)
    repository.commit_staging("mended", ADA)
    assert repository.returning(repository.candidate("", ADA)) == RejectedFiles(bad, unchanged, changed)
    promote(repository)
    wanted = {name: text for name, text in (WHOLE | left).items() if text is not None}
    assert files(repository.home / "engine") == wanted


def test_a_clean_staging_follows_and_nothing_comes_back(tmp_path: Path) -> None:
    repository = made(tmp_path)
    good, _ = repository.head(), broken(repository)
    assert taken_back(repository, good).notes == ()
    assert files(repository.home / "staging") == FILES
    edited(repository, "rules/new.py", "N = 1\n")
    assert repository.returning(repository.candidate("", ADA)) is None
    promote(repository)
    assert files(repository.home / "engine") == {**FILES, "rules/new.py": "N = 1\n"}


def test_what_was_rejected_is_no_news_until_somebody_changes_it(tmp_path: Path) -> None:
    repository = made(tmp_path)
    good, _ = repository.head(), broken(repository)
    write(repository.home / "staging" / HOT, "HALF\n")
    taken_back(repository, good)
    write(repository.home / "staging" / HOT, "BAD = 1\n")
    with pytest.raises(NothingToPromote):
        repository.candidate("", ADA)
    assert is_clean(repository.home / "staging")
    git(repository.home / "staging", "reset", "--quiet", "--keep", "main")  # as the advice says
    assert tuple(repository.staging().advice()) == ()
    assert files(repository.home / "staging") == FILES


def test_each_of_several_rollbacks_is_passed_over(tmp_path: Path) -> None:
    repository = made(tmp_path)
    first = repository.head()
    second = promoted(repository, "rules/a.py")
    bad = broken(repository)
    edited(repository, HOT, "MENDED = 1\n")
    taken_back(repository, second)
    taken_back(repository, first)
    commit = repository.candidate("", ADA)
    back = ("engine.py", "rules/a.py", "tests/test_hot.py")
    assert repository.returning(commit) == RejectedFiles(bad, back, (HOT,))
    promote(repository)
    assert files(repository.home / "engine") == {**WHOLE, "rules/a.py": "A = 1\n", HOT: "MENDED = 1\n"}


def test_mending_that_is_rejected_too_is_mended_again(tmp_path: Path) -> None:
    repository = made(tmp_path)
    good = repository.head()
    broken(repository)
    for number in range(3):
        edited(repository, HOT, f"MENDED = {number}\n")
        taken_back(repository, good)
        promote(repository)
        assert files(repository.home / "engine") == {**WHOLE, HOT: f"MENDED = {number}\n"}


def test_a_rollback_after_one_that_staging_followed_is_passed_over_alone(tmp_path: Path) -> None:
    repository = made(tmp_path)
    first = repository.head()
    second = promoted(repository, "rules/a.py")
    broken(repository)
    taken_back(repository, second)
    followed = repository.head()
    edited(repository, "rules/new.py", "N = 1\n")
    taken_back(repository, first)
    assert repository.returning(repository.candidate("", ADA)) == RejectedFiles(followed, ("rules/a.py",), ())
    promote(repository)
    assert files(repository.home / "engine") == {**FILES, "rules/a.py": "A = 1\n", "rules/new.py": "N = 1\n"}


def test_going_forwards_again_is_merged_like_anything_new(tmp_path: Path) -> None:
    repository = made(tmp_path)
    good, later = repository.head(), broken(repository)
    taken_back(repository, good)
    edited(repository, "rules/new.py", "N = 1\n")
    taken_back(repository, later)
    assert repository.staging().taken_back == ""
    promote(repository)
    assert files(repository.home / "engine") == {**WHOLE, "rules/new.py": "N = 1\n"}


def test_what_was_committed_while_the_promote_was_under_way_mends_it_too(tmp_path: Path) -> None:
    repository = made(tmp_path)
    good = promoted(repository, "rules/a.py")
    write(repository.home / "staging" / HOT, "BAD = 1\n")
    edited(repository, "engine.py", LISTED)
    candidate = repository.candidate("bad", ADA)
    held = repository.staging().commit
    edited(repository, HOT, "MENDED = 1\n")
    repository.point_main(candidate, good)
    taken_back(repository, good)
    assert repository.returning(repository.candidate("", ADA)) == RejectedFiles(held, ("engine.py",), (HOT,))
    promote(repository)
    assert files(repository.home / "engine")["engine.py"] == LISTED


def test_a_commit_by_hand_is_a_side_of_the_merge(tmp_path: Path) -> None:
    repository = made(tmp_path)
    good, _ = repository.head(), broken(repository)
    edited(repository, HOT, "MENDED = 1\n")
    taken_back(repository, good)
    write(repository.home / "engine" / "rules" / "hand.py", "H = 1\n")
    git(repository.home / "engine", "add", "--all")
    git(repository.home / "engine", "commit", "--quiet", "-m", "by hand")
    with pytest.raises(MergeConflict, match=HOT):
        repository.candidate("", ADA)
    assert repository.staging().taken_back == ""


def test_a_revert_by_hand_is_no_rollback_of_pulse(tmp_path: Path) -> None:
    repository = made(tmp_path)
    broken(repository)
    edited(repository, HOT, "MENDED = 1\n")
    git(repository.home / "engine", "revert", "--no-edit", "--mainline", "1", "HEAD")
    with pytest.raises(MergeConflict, match=HOT):
        repository.candidate("", ADA)


def test_a_rollback_takes_no_file_from_under_edits(tmp_path: Path) -> None:
    repository = made(tmp_path)
    good, _ = repository.head(), broken(repository)
    write(repository.home / "staging" / "rules" / "new.py", "N = 1\n")
    before = files(repository.home / "staging")
    assert "keeps your work" in taken_back(repository, good).notes[0]
    assert files(repository.home / "staging") == before
    assert repository.staging().dirty == ("rules/new.py",)


def test_a_rejected_work_comes_back_into_a_staging_that_followed(tmp_path: Path) -> None:
    repository = made(tmp_path)
    good, bad = repository.head(), broken(repository)
    taken_back(repository, good)
    kept = repository.keep_branch("rejected/it", bad)
    git(repository.home / "staging", "restore", "--source", kept, ".")  # as `upulse rollback` says
    edited(repository, HOT, "MENDED = 1\n")
    promote(repository)
    assert files(repository.home / "engine") == {**WHOLE, HOT: "MENDED = 1\n"}


@pytest.mark.parametrize("after", sampled([False, True], 2))
@pytest.mark.parametrize("is_edited", [False, True])
def test_killed_at_any_call_of_git_a_rollback_is_finished_by_the_same_call(
    tmp_path: Path, after: bool, is_edited: bool
) -> None:
    repository = made(tmp_path)
    calls, survived = sample(8 * after + 4 * is_edited - EACH + 1, 0), False
    while not survived:
        calls += EACH
        good = promoted(repository, "rules/a.py", f"A = {calls}\n")
        write(repository.home / "staging" / HOT, f"BAD = {calls}\n")
        bad = promoted(repository, "engine.py", f"RULES = {[calls]}\n")
        if is_edited:
            write(repository.home / "staging" / HOT, f"MENDED = {calls}\n")
        wanted = files(repository.home / "staging")
        back = repository.reverting(good, "back", PULSE)
        try:
            point_main(MortalGit(repository.home, calls, after=after), back, bad)
            survived = True
        except Killed:
            assert repository.point_main(back, bad).stray == ""
        assert repository.head() == back
        engine = files(repository.home / "engine")
        assert engine["rules/a.py"] == f"A = {calls}\n"
        assert is_clean(repository.home / "engine")
        assert files(repository.home / "staging") == (wanted if is_edited else engine)
        assert is_clean(repository.home / "staging") != is_edited
        if is_edited:
            git(repository.home / "staging", "checkout", "--quiet", HOT)
            git(repository.home / "staging", "reset", "--quiet", "--keep", "main")
    assert calls > 20


def test_files_of_staging_that_were_half_moved_when_git_was_killed_are_nobodys(tmp_path: Path) -> None:
    repository = made(tmp_path)
    good, bad = repository.head(), broken(repository)
    back = repository.reverting(good, "back", PULSE)
    git(repository.home / "engine", "update-ref", "refs/pulse/forwarding", back)
    (repository.home / "staging" / HOT).unlink()
    write(repository.home / "staging" / "engine.py", FILES["engine.py"])
    assert repository.point_main(back, bad).notes == ()
    assert is_clean(repository.home / "staging")
    assert files(repository.home / "staging") == FILES
