"""What programs read in JSON stays: fields are added, and never taken away or given another type.

`python -m tests.golden.test_golden_json` writes down what is new, and refuses to forget what there was.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints, is_typeddict

from pulse_core.composition import KINDS
from pulse_core.model.home_status import HomeStatus

KEPT = Path(__file__).with_name("json_fields.json")


def fields_now() -> dict[str, str]:
    """The way to each field of each kind of event and of the status, with its type."""
    ours = (kind for kind in KINDS.values() if kind.__module__.startswith("pulse_core."))
    found = {
        f"{kind.kind}.{name}": json_type(schema)
        for kind in ours
        for name, schema in kind.model_json_schema().get("properties", {}).items()
    }
    return dict(sorted({**found, **dict(of_typed_dict(HomeStatus, "status"))}.items()))


def json_type(schema: Mapping[str, Any]) -> str:
    """The types that a value may have."""
    if "anyOf" in schema:
        return " | ".join(sorted(map(json_type, schema["anyOf"])))
    return "object" if "$ref" in schema else str(schema.get("type", "any"))


def of_typed_dict(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """The way to each field of a typed dictionary, and of those in it."""
    for name, kind in get_type_hints(value).items():
        inner = [one for one in (kind, *get_args(kind)) if is_typeddict(one)]
        yield f"{path}.{name}", "object" if inner else getattr(kind, "__name__", "") or str(kind)
        for one in inner:
            yield from of_typed_dict(one, f"{path}.{name}")


def lost(now: Mapping[str, str]) -> dict[str, str]:
    """What was kept and is not there any more, or is of another type."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    return {path: kind for path, kind in kept.items() if now.get(path) != kind}


def test_no_field_was_taken_away_or_given_another_type() -> None:
    assert lost(fields_now()) == {}


def test_every_field_is_kept_from_now_on() -> None:
    new = fields_now().keys() - json.loads(KEPT.read_text()).keys()
    assert not new, "write them down with: python -m tests.golden.test_golden_json"


def test_a_lost_field_and_another_type_are_seen() -> None:
    now = fields_now()
    now.pop("process-died.evidence")
    now["status.tick.count"] = "<class 'str'>"
    assert lost(now).keys() == {"process-died.evidence", "status.tick.count"}


if __name__ == "__main__":
    fields = fields_now()
    if missing := lost(fields):
        raise SystemExit(f"programs read these: {missing}")
    KEPT.write_text(json.dumps(fields, indent=1) + "\n")
