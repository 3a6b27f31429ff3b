"""What programs read in JSON stays: fields are added, and never taken away or given another type.

`python -m tests.golden.test_golden_json` writes down what is new, and refuses to forget what there was.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import typer.main

from docs.generate import json_type
from docs.json_answers import ANSWERS
from docs.json_reference import answer_words, record_fields, records, type_words
from pulse_core.composition import KINDS
from tests.json_answers import check_json
from upulse_cli.app import app

KEPT = Path(__file__).with_name("json_fields.json")


def fields_now() -> dict[str, str]:
    """Each field of each kind of event and of each object that a command prints, with its type; and what each prints."""
    ours = (kind for kind in KINDS.values() if kind.__module__.startswith("pulse_core."))
    of_events = {
        f"{kind.kind}.{name}": json_type(schema)
        for kind in ours
        for name, schema in kind.model_json_schema().get("properties", {}).items()
    }
    of_answers = {
        f"{record.__name__}.{name}": type_words(field.kind) + " or missing" * field.may_be_missing
        for kind in ANSWERS.values()
        for record in records(kind)
        for name, field in (record_fields(record) or {}).items()
    }
    prints = {f"upulse {words}": answer_words(kind) for words, kind in ANSWERS.items()}
    return dict(sorted({**of_events, **of_answers, **prints}.items()))


def lost(now: Mapping[str, str]) -> dict[str, str]:
    """What was kept and is not there any more, or is of another type."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    return {path: kind for path, kind in kept.items() if now.get(path) != kind}


def commands_with_json(command: Any, words: tuple[str, ...] = ()) -> Iterator[str]:
    """The words of each command that takes `--json`."""
    if any("--json" in param.opts for param in command.params):
        yield " ".join(words)
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands_with_json(inner, (*words, name))


def test_what_each_command_prints_as_json_is_documented() -> None:
    assert set(commands_with_json(typer.main.get_command(app))) == ANSWERS.keys(), (
        "add it to docs.json_answers"
    )


def test_no_field_was_taken_away_or_given_another_type() -> None:
    assert lost(fields_now()) == {}


def test_every_field_is_kept_from_now_on() -> None:
    new = fields_now().keys() - json.loads(KEPT.read_text()).keys()
    assert not new, "write them down with: python -m tests.golden.test_golden_json"


def test_a_lost_field_and_another_type_are_seen() -> None:
    now = fields_now()
    now.pop("process-died.evidence")
    now["TickStatus.count"] = "string"
    now["upulse task list"] = "TaskJson"
    assert lost(now).keys() == {"process-died.evidence", "TickStatus.count", "upulse task list"}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"format": 1, "id": "a", "open": True}, ""),
        ({"id": "a", "open": True}, "no format"),
        ({"format": 1, "id": "a", "open": 1}, "open is no boolean"),
        ({"format": 1, "id": "a"}, "open is not there"),
        ({"format": 1, "id": "a", "open": True, "new": 1}, "new is not documented"),
    ],
)
def test_an_answer_that_is_not_as_documented_is_seen(answer: Mapping[str, Any], words: str) -> None:
    with pytest.raises(AssertionError, match=words) if words else nullcontext():
        check_json(["task", "deps", "x", "--json"], json.dumps([answer]))


if __name__ == "__main__":
    fields = fields_now()
    if missing := lost(fields):
        raise SystemExit(f"programs read these: {missing}")
    KEPT.write_text(json.dumps(fields, indent=1) + "\n")
