"""The campaign that changes the survival rules: what it changes, and that nothing which lives through it is passed over."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.campaign.changes import changes
from tests.campaign.mutants import judgements

RULE = '''
LIMIT = 3
KNOWN: dict[str, str] = {"one": "two"}


def late(age: int, name: str = "x") -> str:
    """Whether it is late."""
    if age > LIMIT and name in KNOWN:
        return f"{age + 1} is late"
    return ""
'''


def test_every_slip_of_the_keyboard_is_tried_and_no_word_is_changed() -> None:
    assert [(change.line, change.name) for change in changes("rule", RULE, "rule.py")] == [
        (2, "rule: LIMIT = 3 => LIMIT = 4"),
        (3, "rule: without 'one'"),
        (8, "rule.late: if age > LIMIT and name in KNOWN: => pass"),
        (8, "rule.late: age > LIMIT and name in KNOWN => age > LIMIT or name in KNOWN"),
        (8, "rule.late: age > LIMIT => age >= LIMIT"),
        (8, "rule.late: name in KNOWN => name not in KNOWN"),
        (9, "rule.late: return f'{age + 1} is late' => return ''"),
    ]


def test_each_change_stands_alone_in_its_code() -> None:
    def late(change: int, age: int) -> str:
        namespace: dict[str, object] = {}
        exec(list(changes("rule", RULE, "rule.py"))[change].code, namespace)
        return str(namespace["late"](age, "one"))  # type: ignore[operator]

    assert [late(change, 3) for change in range(7)] == ["", "", "", "4 is late", "4 is late", "", ""]
    assert [late(change, 4) for change in range(7)] == ["", "", "", *["5 is late"] * 2, "", ""]


def campaign(*words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "tests.campaign.mutants", "kill_switch", *words]
    root = Path(__file__).resolve().parents[2]
    return subprocess.run(argv, cwd=root, capture_output=True, text=True, check=False, timeout=100)


def test_a_rule_whose_tests_notice_everything_passes() -> None:
    done = campaign("--tests", "tests/unit/rules/test_kill_switch.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mutants: 0 of 7 lived, 0 of them not judged" in done.stdout


def test_what_lives_must_be_judged(tmp_path: Path) -> None:
    judged = tmp_path / "judged.txt"
    judged.write_text(
        "kill_switch.kill_switch: not verdict.effects => verdict.effects\n    Nobody\n    cares.\n"
    )
    done = campaign("--tests", "tests/unit/rules/test_stopping.py", "--judged", str(judged))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "mutants: 7 of 7 lived, 6 of them not judged" in done.stdout
    assert (
        "kill_switch.py:13: kill_switch.kill_switch: not verdict.effects => verdict.effects\n" in done.stdout
    )
    assert done.stdout.count("judged: Nobody cares.") == 1


def test_a_judgement_gives_its_reason(tmp_path: Path) -> None:
    judged = tmp_path / "judged.txt"
    judged.write_text("# A remark.\n\nrule: a => b\n")
    with pytest.raises(SystemExit, match="no reason is given for 'rule: a => b'"):
        judgements(judged)
