"""Finds the matching lines of a block: words are searched in the whole block, and lines are cut out around hits."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pulse_core.model.names import NOTICE_SEVERITIES
from pulse_core.model.pattern import SearchPattern, search_pattern
from pulse_core.model.secret_text import hide_secrets

TOLD = 2_000
"""Characters of a line that are told."""


_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")


class LinePattern(NamedTuple):
    """What one `[[log]]` searches for; limit: lines a minute that are reported; rank: of its severity, the worst highest."""

    words: tuple[bytes, ...]
    patterns: tuple[SearchPattern, ...]
    ignored: tuple[bytes, ...]
    limit: int
    rank: int


def pattern_from_json(log: Mapping[str, Any]) -> LinePattern:
    """A pattern from JSON, without expressions that RE2 does not support, as the settings' check reports, and without
    words with a line break, which can match no line."""
    patterns = tuple(pattern for text in log["match"] if (pattern := search_pattern(text)))
    words, ignored = (
        tuple(text.encode() for text in log[name] if "\n" not in text) for name in ("keywords", "ignore")
    )
    rank = NOTICE_SEVERITIES.index(log["severity"])
    return LinePattern(words, patterns, ignored, int(log["lines_per_minute"]), rank)


def matches_by_rule(rules: Mapping[int, LinePattern], block: bytes) -> dict[int, list[bytes]]:
    """The lines of a block that match, by the number of the rule. One that several match is the worst one's alone: it was
    written once, and is counted and told once."""
    found: dict[int, list[bytes]] = {}
    for number in sorted(rules, key=lambda one: -rules[one].rank):
        lines = matching_lines(rules[number], block)
        if lines and found:
            known = {line for others in found.values() for line in others}
            lines = [line for line in lines if line not in known]
        if lines:
            found[number] = lines
    return found


def matching_lines(rule: LinePattern, block: bytes) -> list[bytes]:
    """The lines of a block (whole lines, each with its newline) that match the rule, in their order."""
    lines = _lines_matching(rule, block) if rule.patterns else _lines_with_words(rule.words, block)
    if not rule.ignored:
        return list(lines)
    return [line for line in lines if not any(text in line for text in rule.ignored)]


def _lines_with_words(words: tuple[bytes, ...], block: bytes) -> Iterator[bytes]:
    """Lines with one of the words; the others are skipped at the speed of `bytes.find`."""
    find = block.find
    ahead = {word: place for word in words if (place := find(word)) >= 0}
    while ahead:
        place = min(ahead.values())
        end = find(b"\n", place)
        yield block[block.rfind(b"\n", 0, place) + 1 : end]
        for word in [word for word, place in ahead.items() if place < end]:
            ahead[word] = find(word, end)
            if ahead[word] < 0:
                del ahead[word]


def _lines_matching(rule: LinePattern, block: bytes) -> Iterator[bytes]:
    """Lines with one of the words, or that a pattern matches: each line is searched by itself."""
    for line in block.split(b"\n")[:-1]:
        text = line.rstrip(b"\r")
        if any(word in line for word in rule.words) or any(one.finds(text) for one in rule.patterns):
            yield line


def first_lines(block: bytes, number: int) -> bytes:
    """So many lines of a block (whole lines, each with its newline); all if there are fewer."""
    end = 0
    for _ in range(number):
        end = block.find(b"\n", end) + 1
        if not end:
            return block
    return block[:end]


def printable_line(line: bytes) -> str:
    """A line as printable text without secrets: invalid UTF-8 and control characters are replaced; cut at 2,000."""
    text = hide_secrets(_CONTROL.sub("?", line[: TOLD * 4].decode("utf-8", "replace").rstrip("\r")))
    return text if len(text) <= TOLD else f"{text[: TOLD - 3]}..."
