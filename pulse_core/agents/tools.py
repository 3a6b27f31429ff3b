"""The programs that are known as agents: how each is called, and what its output says. Pure.

As documented: Claude Code's and Cursor's `--output-format stream-json`, Codex' `exec --json`, Hermes' `chat -q`.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic_core import from_json, to_json

from pulse_core.model.errors import hint
from pulse_core.model.json_types import Json

MOST_TEXT = 4_000
"""Characters of an answer that are kept with the task; all of it is in the output."""
MOST_NAME, MOST_AMOUNT, MOST_SAID, LONGEST_RECORD = 100, 10**15, 20, 1 << 18
"""Characters of the name of an amount; the largest one; how many turns are known by what they said; and characters of a
record: to read one of eight million holds up the daemon's loop for a second, whichever thread does it."""
_TOLD = ("total_cost_usd", "num_turns", "duration_ms")
_USED = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_IDS = re.compile(r'"(id|tool_use_id|call_id)":"[^"]*"')
FILLED = ("prompt", "prompt_file", "workspace", "model", "task", "title")
_FILL = re.compile(rf"\{{({'|'.join(FILLED)})\}}")


class RunAnswer(NamedTuple):
    """What an agent's output says. done: whether it did its task, None if it does not say; usage: tokens, cost, turns;
    garbled: it ends without a result."""

    done: bool | None = None
    text: str = ""
    error: str = ""
    usage: Mapping[str, Json] = {}
    garbled: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    """A kind of agent.

    program: looked for in PATH; read: the answer in the last lines of an output; turn: the type of the records that are
    counted as its turns; before, after: arguments around the model's and the settings' own; model, budget: the options that
    name a model, and what a run may cost in US dollars; prompt: how it is told what to do; version, login: arguments that
    show whether it is there, and logged in; logged_in: what the latter prints then, of one whose exit code does not say.
    """

    program: str
    read: Callable[[Sequence[str]], RunAnswer]
    turn: str = ""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    model: str = "--model"
    budget: str = ""
    prompt: str = "stdin"
    version: tuple[str, ...] = ("--version",)
    login: tuple[str, ...] = ()
    logged_in: str = ""

    def argv(self, command: Sequence[str], args: Sequence[str], model: str, cost: float) -> tuple[str, ...]:
        """Its command line, with {…} where something has to be filled in. command: instead of `program`; cost: at most."""
        chosen = (self.model, "{model}") if model and self.model else ()
        bounded = (self.budget, f"{cost:g}") if cost and self.budget else ()
        return (*(command or (self.program,)), *self.before, *chosen, *bounded, *args, *self.after)


def fill(words: Iterable[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """The words with each {name} of these replaced; what was filled in is not looked through again."""
    return tuple(_FILL.sub(lambda found: values[found[1]], word) for word in words)


def unfilled(words: Iterable[str]) -> Iterator[str]:
    """A sentence for each {name} among the words that `fill` leaves as it is, which may be a slip."""
    for name in re.findall(r"\{(\w+)\}", " ".join(_FILL.sub("", word) for word in words)):
        yield f"nothing is filled in for {{{name}}}{hint(name, FILLED)}"


def _records(lines: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    """The JSON objects among lines, the last first; what is none, or too long, is passed over."""
    for line in reversed([one for one in lines if one.startswith("{") and len(one) <= LONGEST_RECORD]):
        with suppress(ValueError):
            if isinstance(record := from_json(line), dict):
                yield record


def read_result_record(lines: Sequence[str]) -> RunAnswer:
    """The last record of type `result`, as Claude Code and Cursor print it."""
    for record in _records(lines):
        if record.get("type") == "result":
            text, failed = str(record.get("result") or ""), bool(record.get("is_error"))
            failed = failed or str(record.get("subtype", "success")) != "success"
            error = (text or str(record.get("subtype", "")) or "it failed") if failed else ""
            if record.get("stop_reason") == "refusal":
                failed, error = True, f"stop_reason refusal: {text}"
            usage = {**_amounts(record.get("usage")), **_amounts(record, _TOLD)}
            if session := record.get("session_id"):
                usage["session_id"] = str(session)[:MOST_NAME]
            return RunAnswer(not failed, text[:MOST_TEXT], error[:MOST_TEXT], usage)
    return _without_result(lines, "", "its output ends without a result")


def read_turn_records(lines: Sequence[str]) -> RunAnswer:
    """The last turn, and the last message before its end, as Codex prints them."""
    end: Mapping[str, Any] | None = None
    text = ""
    for record in _records(lines):
        kind, item = record.get("type"), record.get("item")
        if end is None and kind in ("turn.completed", "turn.failed", "error"):
            end = record
        elif kind == "item.completed" and isinstance(item, dict) and item.get("type") == "agent_message":
            text = str(item.get("text", ""))[:MOST_TEXT]
            break
    if end is None:
        return _without_result(lines, text, "its output ends without the end of a turn")
    if end["type"] == "turn.completed":
        return RunAnswer(True, text, "", _amounts(end.get("usage")))
    words = (told if isinstance(told := end.get("error"), dict) else end).get("message")
    return RunAnswer(False, text, str(words or "it failed")[:MOST_TEXT])


def _without_result(lines: Sequence[str], text: str, words: str) -> RunAnswer:
    """The answer of an output that has none, with the last line that is no record: why it began nothing, perhaps."""
    said = next((line.strip() for line in reversed(lines) if line.strip() and not line.startswith("{")), "")
    return RunAnswer(False, text, f"{words}: {said[:200]}" if said else words, garbled=True)


def read_text(lines: Sequence[str]) -> RunAnswer:
    """The end of the output; only the exit code says whether it is a success."""
    text = "\n".join(lines).strip()
    return RunAnswer(text=text[-MOST_TEXT:], error=text[-1_000:])


class Amounts(NamedTuple):
    """What an output tells of its run as it goes. message: the id of the last one whose tokens are counted; said: hashes of
    what the last turns said; same: how many turns in a row have said one of these again."""

    turns: int = 0
    tokens: int = 0
    message: str = ""
    same: int = 0
    said: tuple[int | None, ...] = ()

    def after(self, lines: Iterable[str], turn: str) -> "Amounts":
        """With further lines, in which records of the type `turn` are turns; a message may be told in several of them."""
        turns, tokens, message, same, before = self
        for record in reversed(list(_records(lines))):
            kind, said = record.get("type"), record
            if kind == turn:
                turns, said = turns + 1, record.get("message")
                told = _content(said or record.get("item"))
                is_same = told is not None and told in before
                same, before = (same + 1, before) if is_same else (0, (*before, told)[-MOST_SAID:])
            if kind not in (turn, "turn.completed") or not isinstance(said, dict):
                continue
            id_ = str(said.get("id", ""))
            if not id_ or id_ != message:
                tokens, message = tokens + int(sum(_amounts(said.get("usage"), _USED).values())), id_
        return Amounts(turns, tokens, message, same, before)


def _content(said: object) -> int | None:
    """A hash of what a turn says, whatever its id and the tokens that it took; None if it says nothing."""
    content = said.get("content", said) if isinstance(said, dict) else None
    return hash(_IDS.sub("", to_json(content).decode())) if content else None


def _amounts(said: object, names: Collection[str] = ()) -> dict[str, Any]:
    """The amounts of these names, or the first ones; what is negative, no number, or larger than any true one is none."""
    known = said if isinstance(said, dict) else {}
    found = ((name, known.get(name)) for name in names or list(known)[:20])
    return {name[:MOST_NAME]: n for name, n in found if isinstance(n, int | float) and 0 <= n <= MOST_AMOUNT}


TOOLS: Mapping[str, Tool] = {
    "command": Tool("", read_text, version=(), model=""),
    "claude": Tool(
        "claude",
        read_result_record,
        "assistant",
        before=("-p", "--output-format", "stream-json", "--verbose"),
        login=("auth", "status", "--text"),
        budget="--max-budget-usd",
    ),
    "codex": Tool(
        "codex",
        read_turn_records,
        "item.completed",
        before=("exec", "--json", "--skip-git-repo-check"),
        after=("-",),
        login=("login", "status"),
    ),
    "cursor": Tool(
        "cursor-agent",
        read_result_record,
        "assistant",
        before=("-p", "--force", "--trust", "--output-format", "stream-json"),
        after=("{prompt}",),
        prompt="argument",
        login=("status",),
    ),
    "hermes": Tool(
        "hermes",
        read_text,
        before=("chat", "-Q"),
        after=("-q", "{prompt}"),
        prompt="argument",
        login=("status",),
        logged_in="(?m)^◆ (API Keys|Auth Providers|API-Key Providers)$[^◆]*✓",
    ),
}
"""The kinds of agents by their names in the settings."""
