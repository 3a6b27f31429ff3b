"""Whatever was recorded, and fits its kind, can be folded: a projection that raises would end the daemon at each start, or
set its capability aside."""

from typing import Any

from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from pulse_core.composition import FOLD, KINDS
from pulse_core.model.event import Event
from pulse_core.model.payload import Payload, decode, encode
from pulse_core.model.stored_data import REDACTED
from pulse_core.projections.incidents import IncidentFold, dump, load

Values = st.SearchStrategy[Any]
TEXTS = st.sampled_from(
    ["", "gateway", "ada", "app", "task_00000a", "agent:ada", "check:c", "usage:gateway:memory", "network", "id-1", "id-2",
     "restart-process", "restart-process:gateway", "notify", "notify:agent:ada", "run-agent", "run-agent:task_00000a:1",
     "task.md", "2026-01-31T00:00:00Z", "-1", "1e999", "null", "\n\u202e\u00e9", "a" * 40, "a" * 64, "x" * 300]
)  # fmt: skip
NAMES = st.sampled_from(
    ["process", "task", "agent", "for_condition", "over", "pid", "started", "bytes", "cost", "title"]
)
NUMBERS = st.sampled_from([-(2**63), -1, 0, 1, 2, 5, 10**6, 10**15, 2**53, 2**63 - 1])
ANY: Values = st.recursive(
    st.none() | st.booleans() | TEXTS | NUMBERS | st.sampled_from([0.5, -1e308]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


def fitting(schema: dict[str, Any], whole: dict[str, Any]) -> Values:
    """Values that have the form of this JSON schema, and mostly its bounds. whole: where its references lead."""
    if "$ref" in schema:
        return fitting(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
    if "anyOf" in schema:
        return st.one_of([fitting(one, whole) for one in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("type") == "array":
        if "prefixItems" in schema:
            return st.tuples(*(fitting(one, whole) for one in schema["prefixItems"])).map(list)
        items = fitting(schema.get("items", {}), whole)
        return st.lists(items, min_size=schema.get("minItems", 0), max_size=min(3, schema.get("maxItems", 3)))
    if schema.get("type") == "object":
        known = {name: fitting(one, whole) for name, one in schema.get("properties", {}).items()}
        if not known:
            of = schema.get("additionalProperties")
            return st.dictionaries(NAMES, fitting(of, whole) if isinstance(of, dict) else ANY, max_size=3)
        needed = set(schema.get("required", ()))
        optional = {name: one for name, one in known.items() if name not in needed}
        return st.fixed_dictionaries({name: known[name] for name in sorted(needed)}, optional=optional)
    return _plain(schema)


def _plain(schema: dict[str, Any]) -> Values:
    """Texts, numbers, and what else has no parts."""
    kind = schema.get("type")
    if kind == "string":
        fits = [st.from_regex(schema["pattern"], fullmatch=True)] if "pattern" in schema else []
        return st.one_of(TEXTS, *fits).map(lambda text: text[: schema.get("maxLength", 300)])
    if kind == "integer":
        low, high = schema.get("minimum", -(2**63)), schema.get("maximum", 2**63 - 1)
        return NUMBERS.map(lambda number: min(max(number, low), high))
    plain: dict[Any, Values] = {
        "boolean": st.booleans(),
        "null": st.none(),
        "number": st.sampled_from([0.0, 0.5, -1e308]),
    }
    return plain.get(kind, ANY)


def payload(kind: str, values: Any) -> Payload | None:
    """The payload of these values; None if they do not fit."""
    try:
        return KINDS[kind].model_validate(values)
    except ValidationError:
        return None


def payloads(kind: str) -> st.SearchStrategy[Payload | None]:
    """Payloads of this kind; None for values that do not fit after all."""
    schema = KINDS[kind].model_json_schema()
    return fitting(schema, schema).map(lambda values: payload(kind, values))


PAYLOADS = {kind: payloads(kind) for kind in KINDS}


@st.composite
def histories_of_all_kinds(draw: st.DrawFn) -> list[Event]:
    """Logs of any kinds in any order; clocks step, boots change, and some rows are redacted."""
    rows, at, mono, boot = list[Event](), 10**15, 0, "boot"
    for seq, kind in enumerate(draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=40)), 1):
        said = draw(PAYLOADS[kind])
        if said is None:
            continue
        at += draw(st.sampled_from([0, 1, 10**6, 3_600_000_000, -3_600_000_000]))
        mono += draw(st.sampled_from([0, 10**3, 60_000_000, 3_600_000_000]))
        boot = draw(st.sampled_from([boot, boot, boot, "other"]))
        data = draw(st.sampled_from([encode(said)] * 9 + [REDACTED]))
        subject = getattr(said, "key", "") if kind == "effect" else draw(TEXTS)
        actor, cause = draw(st.sampled_from(["pulse", "ada"])), draw(st.sampled_from([None, "id-1", "id-2"]))
        rows.append(Event(seq, f"id-{seq}", at, boot, mono, kind, subject, actor, "host", cause, data))
    return rows


@given(histories_of_all_kinds())
def test_no_projection_raises_whatever_was_recorded(history: list[Event]) -> None:
    state = FOLD(FOLD.start, history)
    assert not state.broken
    again = FOLD.load(FOLD.dump(state), state.seq)
    assert FOLD.dump(again) == FOLD.dump(state)
    fold = IncidentFold()
    for row in history:
        fold.take(row)
        decode(row.kind, row.data)
    assert dump(load(dump(fold.state))) == dump(fold.state)
    if history:
        assert all(one.spelled() for one in fold.state.at(history[-1].moment))


def test_values_that_fit_are_found_for_every_kind() -> None:
    quick = settings(phases=[Phase.generate], max_examples=200, database=None)
    for values in PAYLOADS.values():
        assert find(values, lambda said: said is not None, settings=quick)
