"""The campaign that changes the survival rules: what it changes, and that nothing which lives through it is passed over."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

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

CHANGES = {
    "rule: LIMIT = 3 => LIMIT = 4": (2, ""),
    "rule: {…} without 'one'": (3, ""),
    "rule.late: if age > LIMIT and name in KNOWN: => pass": (8, ""),
    "rule.late: age > LIMIT and name in KNOWN => age > LIMIT or name in KNOWN": (8, "5 is late"),
    "rule.late: age > LIMIT and name in KNOWN without age > LIMIT": (8, "5 is late"),
    "rule.late: age > LIMIT and name in KNOWN without name in KNOWN": (8, "5 is late"),
    "rule.late: age > LIMIT => age >= LIMIT": (8, "5 is late"),
    "rule.late: name in KNOWN => name not in KNOWN": (8, ""),
    "rule.late: return f'{age + 1} is late' => return ''": (9, ""),
}
"""Every slip, the line it is in, and what becomes of something that is late by one."""


def test_every_slip_of_the_keyboard_is_tried_and_no_word_is_changed() -> None:
    found = [(change.name, change.line) for change in changes("rule", RULE, "rule.py")]
    assert found == [(name, line) for name, (line, _) in CHANGES.items()]


def test_each_change_stands_alone_in_its_code() -> None:
    for change in changes("rule", RULE, "rule.py"):
        rule: dict[str, Any] = {}
        exec(change.code, rule)
        assert rule["late"](4, "one") == CHANGES[change.name][1], change.name


def test_the_same_change_twice_in_one_place_has_two_names() -> None:
    names = [
        change.name for change in changes("rule", "def f(a: int) -> None:\n    g(a < 1, a < 1)\n", "rule.py")
    ]
    assert {"rule.f: a < 1 => a <= 1", "rule.f: a < 1 => a <= 1 (#2)"} < set(names)


def campaign(*words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "tests.campaign.mutants", "kill_switch", *words]
    root = Path(__file__).resolve().parents[2]
    return subprocess.run(argv, cwd=root, capture_output=True, text=True, check=False, timeout=100)


def test_a_rule_whose_tests_notice_everything_passes() -> None:
    done = campaign("--stride", "6", "--tests", "tests/unit/rules/test_kill_switch.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mutants: 0 of 3 lived, 0 of them not judged" in done.stdout


def test_what_lives_must_be_judged(tmp_path: Path) -> None:
    judged = tmp_path / "judged.txt"
    judged.write_text(
        "kill_switch.kill_switch: not verdict.effects => verdict.effects\n    Nobody\n    cares.\n"
    )
    done = campaign("--tests", "tests/unit/rules/test_stopping.py", "--judged", str(judged))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "mutants: 16 of 16 lived, 15 of them not judged" in done.stdout
    change = re.escape("kill_switch.kill_switch: not verdict.effects => verdict.effects\n")
    assert re.search(rf"kill_switch\.py:\d+: {change}", done.stdout)
    assert done.stdout.count("judged: Nobody cares.") == 1


def test_a_judgement_gives_its_reason(tmp_path: Path) -> None:
    judged = tmp_path / "judged.txt"
    judged.write_text("# A remark.\n\nrule: a => b\n")
    with pytest.raises(SystemExit, match="no reason is given for 'rule: a => b'"):
        judgements(judged)
