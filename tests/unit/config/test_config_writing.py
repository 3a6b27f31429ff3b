"""The template and the reference can't drift from the models, and what is shown can be loaded."""

import json
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from docs.settings_reference import reference
from pulse_adapters.config.catalogue import groups, settings_of
from pulse_adapters.config.file import load
from pulse_adapters.config.settings_check import validate
from pulse_adapters.config.template import has_header, header, template
from pulse_adapters.config.toml_writer import settings_as_toml, value_as_toml
from pulse_core.model.secret_text import HIDDEN, hide_secrets
from pulse_core.settings.groups import AS_WRITTEN
from pulse_core.settings.processes import ProcessSettings, RestartSettings
from pulse_core.settings.settings import Settings
from tests.long_form import sample

COMPANIONS: dict[str, dict[str, Any]] = {
    "process": {"start": ["a"]},
    "agent": {"command": ["a"]},
    "log": {"path": "/a", "keywords": ["a"]},
    "check": {"file": "/a"},
}
"""What a block needs besides its required keys to be of use."""


def uncommented(text: str) -> str:
    return re.sub(r"^#(?=[\w\[])", "", text, flags=re.MULTILINE)


def document(path: str, table: dict[str, Any]) -> dict[str, Any]:
    """A file with just this group."""
    whole: Any = [table] if header(path).startswith("[[") else table
    named = {"process": [{"name": table["process"], "start": ["a"]}]} if path == "openclaw" else {}
    for part in reversed(path.split(".")):
        whole = {part: whole}
    return {**named, **whole}


def test_the_template_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(template())
    assert load(tmp_path / "config.toml") == Settings()


@pytest.mark.parametrize("path", [path for path, _ in groups() if has_header(path)])
def test_the_template_says_the_defaults(path: str) -> None:
    said = example(tomllib.loads(uncommented(template())), path)
    settings = settings_of(dict(groups())[path])
    required = {s.key: said[s.key] for s in settings if s.field.is_required()} | COMPANIONS.get(path, {})
    defaults = {s.key: said[s.key] for s in settings if s.default is not None}
    assert validate(document(path, {**defaults, **required})) == validate(document(path, required))


def test_every_example_can_be_written() -> None:
    """So whoever takes the '#' away from a line has settings that are good, but for what they name."""
    for _, model in groups():
        for setting in settings_of(model):
            written = tomllib.loads(f"x = {value_as_toml(setting, setting.example)}")["x"]
            annotated: Any = Annotated[setting.field.annotation, "a setting", *setting.field.metadata]
            field: TypeAdapter[Any] = TypeAdapter(annotated)
            field.validate_json(json.dumps(written), strict=True, context=dict(AS_WRITTEN))


def test_every_setting_is_in_the_template_and_in_the_reference() -> None:
    said, table = tomllib.loads(uncommented(template())), reference()
    comments = " ".join(" ".join(re.sub(r"^#\s*", "", row) for row in template().split("\n")).split())
    for path, model in groups():
        for setting in settings_of(model):
            words = setting.field.description
            assert words, setting.key
            assert f"| `{setting.key}` | {setting.kind}" in table
            assert words.replace("|", "\\|") in table
            assert " ".join(words.split()) in comments
            assert setting.key in example(said, path) or setting.default is None


def example(said: Any, path: str) -> Any:
    """The group of this path in the template, the first one of many."""
    for part in path.split("."):
        said = said[part][0] if isinstance(said[part], list) else said[part]
    return said


def test_the_reference_gives_defaults_that_differ_where_they_differ() -> None:
    assert "### `memory`, `swap`, `pressure` in `[resources]`" in reference()
    assert '| `swap` | inline table | `{ raise = 0.9, clear = 0.7, for = "5m" }` |' in reference()
    assert "| `clear` | number, less than 1 | see above |" in reference()
    assert "| `clear` | number, less than 1 | `0.85` |" in reference()
    assert '| `severity` | text, one of "warning", "error", "critical" | `"error"` |' in reference()


def test_the_demo_guards_something_harmless(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(template(demo=True))
    (demo,) = load(tmp_path / "config.toml").process
    assert (demo.name, demo.start) == ("demo", ("sleep", "infinity"))
    assert "kill -9" in template(demo=True)


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
words = texts.filter(bool)


def has_secret(of: list[str]) -> bool:
    """Whether one of the words of a program is hidden where they are shown, as what follows `bearer`."""
    return HIDDEN in hide_secrets("\t".join(of))


names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,10}", fullmatch=True)
paths = names.map(lambda name: f"/{name}/x") | names.map(lambda name: f"~/.{name}/x")
urls = names.map(lambda name: f"http://{name.lower().strip('._-')}x/?{name}")
durations = st.integers(1_000_000, 10**12)
shares = st.integers(1, 999).map(lambda number: number / 1000)
bounds = st.builds(
    lambda low, gap, lasting: {"raise": min(low + gap, 1.0), "clear": low, "for": lasting},
    shares,
    shares,
    durations,
)


def some(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=2, unique_by=str).map(tuple)


def table(required: dict[str, Any], **keys: Any) -> st.SearchStrategy[Any]:
    """A mapping with these keys, any of them missing."""
    return st.fixed_dictionaries(required, optional=keys)


processes = st.lists(
    st.builds(
        ProcessSettings,
        name=names,
        start=st.lists(texts, min_size=1).filter(lambda a: a[0].strip() and not has_secret(a)).map(tuple),
        restart=st.builds(RestartSettings, grace=st.integers(0, 10**12), within=st.integers(1, 10**12)),
    ),
    max_size=3,
    unique_by=lambda process: process.name,
).map(tuple)
anything = table(
    {"process": processes},
    resources=table(
        {},
        memory=bounds,
        swap=bounds,
        disk=st.lists(st.tuples(names, bounds), max_size=2, unique_by=lambda pair: pair[0]).map(
            lambda pairs: tuple({**bound, "path": f"/{name}"} for name, bound in pairs)
        ),
        clean=some(paths),
        sessions=st.none() | table({"root": paths}, archive=st.just("/srv/archive"), keep=durations),
        stop=some(names.map("mine-{}".format)),
    ),
    network=table({}, dns=some(st.just("a.example")), http=some(urls), interval=durations),
    notify=table({}, urls=some(st.just("env:PULSE_NOTIFY_URL")), group=durations),
    metrics=table({}, listen=st.none() | st.just("[::1]:9464"), every=durations),
    heartbeat=table({}, url=st.none() | st.just("env:BEAT")),
    self=table({}, cpu=st.floats(1e-9, 64), memory_mb=st.integers(32, 10**9)),
    llm=some(table({"url": urls}, timeout=durations)).filter(
        lambda held: len({one["url"] for one in held}) == len(held)
    ),
    log=some(table({"path": paths, "keywords": st.tuples(words)}, severity=st.sampled_from(["warning", "critical"]))),
    silence=some(table({"match": words, "at": st.just("02:30"), "for": durations.map(lambda us: us % 10**11 + 1)},
                       days=some(st.sampled_from(["mon", "sun"])), why=texts)),
)  # fmt: skip


@settings(max_examples=sample(40, 400))
@given(anything)
def test_what_is_shown_loads_to_the_same_settings(data: dict[str, Any]) -> None:
    settings = Settings.model_validate(data)
    assert validate(tomllib.loads(settings_as_toml(settings))) == settings
