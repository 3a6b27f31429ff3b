"""Secrets in text of others: values of variables that hold one, and what is written as one.

The text is whatever a program printed, so each search takes a time that grows linearly with it: a pattern here either
fails within a bounded number of characters or consumes what it has looked at.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import compress

HIDDEN = "***"
_SHORTEST, _SHORTEST_BROKEN = 4, 8
"""Values that are shorter are no secrets; nor are those parts of the text that make one only when put together."""
_SECRET_NAME = re.compile(r"key|token|secret|pass|pwd|credential|auth", re.IGNORECASE)
_WORDS = ("://", "bearer", "sk-", "key", "token", "secret", "passw", "authorization")
"""What has none of these has no secret that is written as one."""
_SECRET = "(?:key|token|secret|password|passwd)"
_SCHEME = "(?:Basic|Digest|Negotiate|NTLM|Token|ApiKey)"
_WRITTEN = re.compile(
    r"(\bBearer\s++|\b(?=sk-)"
    rf"""|\bAuthorization["']?[ \t]?[:=][ \t]?["']?{_SCHEME}[ \t]++"""
    rf"""|{_SECRET}["']?[ \t]?[:=][ \t]?["']?|(?<!\S)--?[\w-]{{0,40}}{_SECRET}[ \t]++)"""
    r"""[^\s"',;@&]{4,}+""",
    re.IGNORECASE,
)
"""A bearer token, an API key as `sk-…`, and what follows `token=`, `--token ` or `"password": `."""
_AUTHORITY = re.compile(r"[^/\s]*")
_URL = re.compile(r"""[^\s"'<>]*""")
_PORT = re.compile(r"\d{0,5}(?!\w)")


def hide_secrets(text: str, *environments: Mapping[str, str]) -> str:
    """Text of others without the values of these variables that look like secrets, and without what is written as one."""
    values = (value for env in environments for name, value in env.items() if _looks_secret(name, value))
    text = _without_values(text, {line for value in values for line in (value, *value.split("\n"))})
    lowered = text.lower()  # most lines have no secret, and to see that so costs a thirtieth
    if not any(word in lowered for word in _WORDS):
        return text
    return _WRITTEN.sub(rf"\1{HIDDEN}", _without_passwords(text))


def _looks_secret(name: str, value: str) -> bool:
    if name in ("PWD", "OLDPWD"):  # directories, which each traceback names
        return False
    return bool(_SECRET_NAME.search(name)) or _without_passwords(value) != value or _is_key(value)


def _is_key(value: str) -> bool:
    """Whether it is one word of 20 characters or more, with letters and digits."""
    return (
        len(value) >= 20
        and not any(char == "/" or char.isspace() for char in value)
        and any(char.isdigit() for char in value)
        and any(char.isascii() and char.isalpha() for char in value)
    )


def _without_values(text: str, values: Iterable[str]) -> str:
    longest_first = sorted((one for one in values if len(one) >= _SHORTEST), key=len, reverse=True)
    for value in longest_first:
        text = text.replace(value, HIDDEN)
    broken = ["".join(value.split()) for value in longest_first]
    long = [value for value in broken if len(value) >= _SHORTEST_BROKEN]
    return _without_broken_values(text, long) if long else text


def _without_broken_values(text: str, values: Iterable[str]) -> str:
    """Text without those of these values that are parted by blanks, line breaks or control characters."""
    is_kept = [char.isprintable() and not char.isspace() for char in text]
    packed = "".join(compress(text, is_kept))
    found = [(at, at + len(value)) for value in values for at in _places(packed, value)]
    if not found:
        return text
    places, parts, begin = list(compress(range(len(text)), is_kept)), [], 0
    for first, last in sorted((places[first], places[last - 1] + 1) for first, last in found):
        if first >= begin:
            parts += [text[begin:first], HIDDEN]
        begin = max(begin, last)
    return "".join((*parts, text[begin:]))


def _places(text: str, value: str) -> Iterable[int]:
    at = text.find(value)
    while at >= 0:
        yield at
        at = text.find(value, at + len(value))


def _without_passwords(text: str) -> str:
    """Text without the names and passwords in its URLs."""
    first, *rest = text.split("://")
    return "://".join((first, *map(_without_user, rest)))


def _without_user(url: str) -> str:
    """What follows `://`, without the name and password before its host.

    A password that is not encoded as it should be may hold '/' and '@': up to the last '@' nothing is shown, unless what
    follows the ':' is a port.
    """
    authority = _AUTHORITY.match(url)[0]  # type: ignore[index] # it matches anything
    name, colon, rest = authority.partition(":")
    if not colon or "@" in name:
        return url
    end = authority.rfind("@")
    if end >= 0 or not _PORT.match(rest):
        end = max(end, _URL.match(url)[0].rfind("@"))  # type: ignore[index]
    return url if end <= len(name) + 1 else f"{HIDDEN}{url[end:]}"
