"""The template and the reference can't drift from the models, and what is shown can be loaded."""

import re
import tomllib
from pathlib import Path

import hypothesis
from hypothesis import given
from hypothesis import strategies as st

from pulse_adapters.config.catalogue import groups, settings_of
from pulse_adapters.config.checking import validate
from pulse_adapters.config.file import load
from pulse_adapters.config.template import reference, template
from pulse_adapters.config.writing import show
from pulse_core.settings import ProcessSettings, RestartSettings, Settings


def uncommented(text: str) -> str:
    return re.sub(r"^#(?=[\w\[])", "", text, flags=re.MULTILINE)


def test_the_template_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(template())
    assert load(tmp_path / "config.toml") == Settings()


def test_the_template_says_the_defaults() -> None:
    said = tomllib.loads(uncommented(template()))
    (process,) = said.pop("process")
    unset = {(path, s.key) for path, model in groups() for s in settings_of(model) if s.default is None}
    for path, name in unset - {("process", s.key) for s in settings_of(ProcessSettings)}:
        del said[path][name]
    assert validate(said) == Settings()
    for setting in settings_of(ProcessSettings):
        if setting.default is not None and not setting.inner:
            assert process[setting.key] == (
                list(setting.default) if setting.kind == "list of texts" else setting.default
            )
    assert ProcessSettings(name="a", start=("a",), restart=process["restart"]).restart == RestartSettings()


def test_every_setting_is_in_the_template_and_in_the_reference() -> None:
    said, table = tomllib.loads(uncommented(template())), reference()
    for path, model in groups():
        for setting in settings_of(model):
            words = setting.field.description
            assert words, setting.key
            assert f"| `{setting.key}` |" in table
            assert words in table
            group = said
            for part in path.split("."):
                found = group[part]
                group = found[0] if isinstance(found, list) else found
            assert setting.key in group
            assert words.split(",")[0][:40] in " ".join(
                re.sub(r"^#\s*", "", row) for row in template().split("\n")
            )


def test_the_demo_guards_something_harmless(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(template(demo=True))
    (demo,) = load(tmp_path / "config.toml").process
    assert (demo.name, demo.start) == ("demo", ("sleep", "infinity"))
    assert "kill -9" in template(demo=True)


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,10}", fullmatch=True)


@hypothesis.settings(deadline=None)
@given(
    st.dictionaries(
        names,
        st.builds(
            ProcessSettings,
            name=names,
            start=st.lists(texts, min_size=1).filter(lambda a: a[0].strip()).map(tuple),
            env=st.dictionaries(texts.filter(lambda n: n and "=" not in n), texts, max_size=2),
            restart=st.builds(RestartSettings, grace=st.integers(0, 10**12), within=st.integers(1, 10**12)),
        ),
        max_size=3,
    ),
)
def test_what_is_shown_loads_to_the_same_settings(processes: dict[str, ProcessSettings]) -> None:
    named = (process.model_copy(update={"name": name}) for name, process in processes.items())
    settings = Settings(process=tuple(named))
    assert validate(tomllib.loads(show(settings))) == settings
