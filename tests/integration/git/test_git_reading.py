"""What the repository tells people."""

from pathlib import Path

import pytest

from pulse_core.model.errors import Ambiguous, PulseError, UnknownName
from tests.integration.git.git_scene import ADA, edited, git, made, newest, promoted


def test_the_log_is_mains_own_newest_first(tmp_path: Path) -> None:
    repository = made(tmp_path)
    first = repository.head()
    edited(repository, "rules/x.py")
    second = promoted(repository, "rules/a.py")
    assert repository.recent_commits(20) == [second, first]
    assert repository.recent_commits(1) == [second]


def test_a_message_of_many_lines_is_kept_whole(tmp_path: Path) -> None:
    repository = made(tmp_path)
    edited(repository)
    before = repository.head()
    message = "first line\n\n# second\nthird ☃"
    repository.point_main(repository.candidate(message, ADA), before)
    assert newest(repository, "%B") == message


def test_a_difference_is_text_and_runs_no_program_of_the_repositorys(tmp_path: Path) -> None:
    repository = made(tmp_path)
    engine = repository.home / "engine"
    git(engine, "config", "diff.external", "false")
    git(engine, "config", "color.ui", "always")
    first = repository.head()
    said = repository.diff(first, promoted(repository, "rules/ä.py", "A = 'ü'\n"))
    assert "+++ b/rules/ä.py" in said
    assert "+A = 'ü'" in said
    assert "\x1b" not in said


def test_a_word_is_a_branch_or_the_beginning_of_a_hash(tmp_path: Path) -> None:
    repository = made(tmp_path)
    first = repository.head()
    second = promoted(repository)
    third = edited(repository, "rules/b.py")
    repository.keep_branch("rejected/first", first)
    meant = {
        "main": second,
        "staging": third,
        "rejected/first": first,
        first[:7]: first,
        third: third,
        "main~1": first,
    }
    assert {word: repository.resolve(word) for word in meant} == meant


def test_a_tag_can_not_pass_for_main(tmp_path: Path) -> None:
    repository = made(tmp_path)
    first = repository.head()
    second = promoted(repository)
    git(repository.home / "engine", "tag", "main", first)
    assert repository.resolve("main") == repository.head() == second


@pytest.mark.parametrize(
    ("word", "near"), [("stagign", "did you mean 'staging'"), ("mian", "did you mean 'main'")]
)
def test_an_unknown_word_is_answered_with_the_nearest(tmp_path: Path, word: str, near: str) -> None:
    with pytest.raises(UnknownName, match=near):
        made(tmp_path).resolve(word)


def test_a_hash_with_a_slip_is_answered_with_the_nearest(tmp_path: Path) -> None:
    repository = made(tmp_path)
    head = repository.head()[:12]
    with pytest.raises(UnknownName, match=f"did you mean '{head}'"):
        repository.resolve(head[:-1] + ("0" if head[-1] != "0" else "1"))


@pytest.mark.parametrize("word", ["", "-q", "--all", "a\0b"])
def test_what_is_no_name_at_all_is_said(tmp_path: Path, word: str) -> None:
    with pytest.raises(PulseError, match="names no commit"):
        made(tmp_path).resolve(word)


def test_too_short_a_beginning_names_those_it_may_mean(tmp_path: Path) -> None:
    repository = made(tmp_path)
    engine = repository.home / "engine"
    seen: dict[str, str] = {}
    for number in range(2_000):
        commit = git(engine, "commit-tree", "HEAD^{tree}", "-m", str(number))
        if commit[:4] in seen:
            break
        seen[commit[:4]] = commit
    with pytest.raises(Ambiguous, match=commit[:12]):
        repository.resolve(commit[:4])
