"""Secrets in settings: URLs that hold a token or a password, and the values of environments.

They are masked wherever settings are written out, faults don't repeat them, and a masked value is
refused when it is read, so that printed settings can't be used by mistake.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, Field, PlainSerializer, SerializationInfo, ValidationInfo
from pydantic.fields import FieldInfo

from pulse_core.model.secret_text import HIDDEN, hide_secrets
from pulse_core.settings.groups import is_http_url

IN_CLEAR: Mapping[str, Any] = {"in_clear": True}
"""Serialisation context for use within the process: secrets are not masked."""
MASKED: Mapping[str, Any] = {"masked": True}
"""Validation context of settings that were written out, for whoever needs no secrets: masked ones pass."""


def mask_secret(text: str) -> str:
    """The masked form of a secret: the variable that holds it, or the scheme of the URL."""
    return text if text.startswith("env:") else f"{text.partition('://')[0]}://{HIDDEN}"


def is_secret(field: FieldInfo) -> bool:
    """Whether a settings field holds a secret, or several."""
    return any(part in _HIDING for part in field.metadata) or _mentions_it(field.annotation)


def _mentions_it(annotation: Any) -> bool:
    return any(part in _HIDING or _mentions_it(part) for part in get_args(annotation))


def _written(text: str, info: SerializationInfo) -> str:
    return text if (info.context or {}).get("in_clear") else mask_secret(text)


def _written_values(env: dict[str, str], info: SerializationInfo) -> dict[str, str]:
    return env if (info.context or {}).get("in_clear") else dict.fromkeys(env, HIDDEN)


def _is_masked(info: ValidationInfo) -> bool:
    return bool((info.context or {}).get("masked"))


def _environment(env: dict[str, str], info: ValidationInfo) -> dict[str, str]:
    for name, value in env.items():
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(
                f"{name!r} can't be set: a name is not empty, without '=', and nothing holds NUL"
            )
        if value == HIDDEN and not _is_masked(info):
            raise ValueError(f"{value!r} stands for a value of {name} that was hidden; write that")
    return env


def _known(text: str, info: ValidationInfo) -> str:
    if text.startswith("env:") and not re.fullmatch(r"env:[A-Za-z_][A-Za-z0-9_]*", text):
        raise ValueError("what follows 'env:' is no variable's name; write it as 'env:PULSE_NOTIFY_URL'")
    if text.endswith(f"://{HIDDEN}") and not _is_masked(info):
        raise ValueError(f"{text!r} stands for a URL that was hidden; write that, or 'env:NAME'")
    return text


def _notice_url(text: str) -> str:
    if not text.startswith("env:") and not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*://\S+", text):
        raise ValueError(
            "this is no notification URL; write an Apprise URL, 'scheme://…', or 'env:NAME' of a variable that holds it"
        )
    return text


def _beat_url(text: str) -> str:
    if not text.startswith("env:") and not is_http_url(text):
        raise ValueError("this is no URL; write it in full, or 'env:NAME' of a variable that holds it")
    return text


def _without_secrets(words: tuple[str, ...]) -> tuple[str, ...]:
    shown = tuple(
        hide_secrets("\t".join(words)).split("\t")
    )  # a secret may follow its name as a word of its own
    return shown if len(shown) == len(words) else tuple(map(hide_secrets, words))


def _written_words(words: tuple[str, ...], info: SerializationInfo) -> tuple[str, ...]:
    return words if (info.context or {}).get("in_clear") else _without_secrets(words)


def _words(words: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
    if words and not words[0].strip():
        raise ValueError("its first word, the program, is empty")
    if any("\0" in word for word in words):
        raise ValueError("a word of it holds a NUL character, which no program can be given")
    restored = tuple(word.replace(HIDDEN, "x" * 8) for word in words)
    for shown, word in zip(_without_secrets(restored), words, strict=True):
        if HIDDEN in word and HIDDEN in shown and not _is_masked(info):
            raise ValueError(f"{word!r} stands for a secret that was hidden; write that")
    return words


_HIDE = PlainSerializer(_written, return_type=str)
_HIDE_WORDS = PlainSerializer(_written_words, return_type=tuple[str, ...])
_HIDE_VALUES = PlainSerializer(_written_values, return_type=dict[str, str])
_HIDING = (_HIDE, _HIDE_VALUES)
# Of an argv what is written as a secret is hidden, not all: faults may repeat the rest.

NoticeUrl = Annotated[str, AfterValidator(_known), AfterValidator(_notice_url), _HIDE]
"""Where a notice goes: an Apprise URL, or `env:NAME` of the environment variable that holds it."""

BeatUrl = Annotated[str, AfterValidator(_known), AfterValidator(_beat_url), _HIDE]
"""Where a sign of life goes: an http or https URL, or `env:NAME` of the variable that holds it."""

Environment = Annotated[dict[str, str], AfterValidator(_environment), _HIDE_VALUES]
"""Variables for a program, by name; often one of them is a key."""

Argv = Annotated[tuple[str, ...], AfterValidator(_words), _HIDE_WORDS, Field(repr=False)]
"""A program and its arguments, never a shell's line; empty where none is given. A token among them is hidden."""
