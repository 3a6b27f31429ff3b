"""What agents' programs are told and what their output says, in the forms that they document."""

import json
from typing import Any, get_args

import pytest

from pulse_core.agents.events import AgentRunEnded
from pulse_core.agents.failures import CONSEQUENCES, FailureKind, failure_of, kind_of
from pulse_core.agents.projection import cost_in
from pulse_core.agents.settings import AgentSettings
from pulse_core.agents.tools import LONGEST_RECORD, MOST_TEXT, TOOLS, Amounts, RunAnswer, fill, unfilled

CLAUDE = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "The leak is mended.",
    "num_turns": 4,
    "total_cost_usd": 0.25,
    "session_id": "s1",
    "usage": {"input_tokens": 10, "output_tokens": 20, "server_tool_use": {"web": 1}},
}
CODEX = (
    {"type": "thread.started", "thread_id": "t"},
    {"type": "item.completed", "item": {"type": "agent_message", "text": "First."}},
    {"type": "item.completed", "item": {"type": "agent_message", "text": "The leak is mended."}},
    {"type": "turn.completed", "usage": {"input_tokens": 10, "cached_input_tokens": 2, "output_tokens": 20}},
)


def lines(*records: object) -> list[str]:
    return [record if isinstance(record, str) else json.dumps(record) for record in records]


def test_what_nothing_is_filled_in_for_is_named_with_what_may_be_meant() -> None:
    assert list(unfilled(["agent", "--say={promt}", "{task} {workspace}", '{"a": 1}', "{}"])) == [
        "nothing is filled in for {promt} (did you mean 'prompt'?)"
    ]


@pytest.mark.parametrize("kind", ["claude", "cursor"])
def test_the_last_result_record_is_the_answer(kind: str) -> None:
    answer = TOOLS[kind].read(lines({"type": "system"}, "a warning", CLAUDE, "{broken", "[1]"))
    assert (answer.done, answer.text, answer.error) == (True, "The leak is mended.", "")
    assert answer.usage == {
        "num_turns": 4,
        "total_cost_usd": 0.25,
        "session_id": "s1",
        "input_tokens": 10,
        "output_tokens": 20,
    }


def test_a_turn_that_was_completed_is_the_answer_with_its_last_message() -> None:
    answer = TOOLS["codex"].read(lines(*CODEX))
    assert (answer.done, answer.text, answer.error) == (True, "The leak is mended.", "")
    assert answer.usage == {"input_tokens": 10, "cached_input_tokens": 2, "output_tokens": 20}


FAILURES = [
    (
        "claude",
        ({**CLAUDE, "is_error": True, "result": "Credit balance is too low"},),
        "Credit balance is too low",
    ),
    ("claude", ({"type": "result", "subtype": "error_max_turns", "is_error": False},), "error_max_turns"),
    ("claude", ("garbage", "\x00\x01", "{}"), "its output ends without a result: \x00\x01"),
    ("claude", (), "its output ends without a result"),
    (
        "claude",
        ({**CLAUDE, "stop_reason": "refusal", "result": "I can't help with that"},),
        "stop_reason refusal: I can't help with that",
    ),
    ("codex", (*CODEX[:3], {"type": "turn.failed", "error": {"message": "quota"}}), "quota"),
    ("codex", ({"type": "error", "message": "stream disconnected"},), "stream disconnected"),
    ("codex", CODEX[:3], "its output ends without the end of a turn"),
]


@pytest.mark.parametrize(("kind", "records", "words"), FAILURES)
def test_what_says_that_it_failed_or_says_nothing_has_failed(
    kind: str, records: tuple[object, ...], words: str
) -> None:
    answer = TOOLS[kind].read(lines(*records))
    assert (answer.done, answer.error) == (False, words)
    assert failure_of(answer, 0, "") == words


def message(id_: str, **usage: Any) -> str:
    """As Claude Code prints a part of a message: the usage is the whole message's in each."""
    said = {"id": id_, "usage": {"cache_creation": {"x": 1}, "service_tier": "standard", **usage}}
    return json.dumps({"type": "assistant", "message": said})


def test_tokens_are_counted_as_they_are_told_those_of_a_message_once() -> None:
    one, other = message("m1", input_tokens=3, output_tokens=2), message("m2", cache_read_input_tokens=10)
    seen = Amounts().after([one, one], "assistant")
    assert seen[:3] == (2, 5, "m1")
    end = json.dumps({"type": "result", "usage": {"input_tokens": 99}})
    seen = seen.after([one, "no json", "{}", '{"type": "assistant", "message": 7}', other, end], "assistant")
    assert seen[:2] == (5, 15)
    codex = {
        "type": "turn.completed",
        "usage": {"input_tokens": 9, "cached_input_tokens": 8, "output_tokens": 1},
    }
    lines = ['{"type": "item.completed", "item": {}}', json.dumps(codex)]
    assert Amounts().after(lines, "item.completed")[:2] == (1, 10)


@pytest.mark.parametrize("more", [0, 1])
def test_a_line_so_long_that_reading_it_holds_up_the_loop_is_no_record(more: int) -> None:
    def of_length(record: str) -> str:
        return record.replace("LONG", "," + " " * (LONGEST_RECORD + more - len(record) + 3))

    turn = of_length('{"type": "assistant"LONG "message": {"id": "m1", "usage": {"output_tokens": 5}}}')
    assert len(turn) == LONGEST_RECORD + more
    assert Amounts().after([turn], "assistant")[:2] == ((0, 0) if more else (1, 5))
    answer = TOOLS["claude"].read([of_length('{"type": "result"LONG "result": "done"}')])
    assert answer.done is not bool(more)


def test_turns_that_say_again_what_one_of_the_last_has_said_are_counted_until_one_says_something_new() -> (
    None
):
    def claude(number: int, words: str) -> str:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": words}}
        usage = {"output_tokens": number}
        return json.dumps(
            {"type": "assistant", "message": {"id": f"m{number}", "content": [block], "usage": usage}}
        )

    def codex(number: int, words: str) -> str:
        item = {"id": f"item_{number}", "type": "command_execution", "command": words}
        return json.dumps({"type": "item.completed", "item": item})

    for tool, one in (("assistant", claude), ("item.completed", codex)):
        seen = Amounts().after([one(1, "ls"), one(2, "pwd")], tool)
        assert seen.same == 0
        seen = seen.after([one(3, "ls"), one(4, "pwd"), one(5, "ls")], tool)
        assert (seen.turns, seen.same) == (5, 3)
        assert seen.after([one(6, "id")], tool).same == 0
    silent = ['{"type": "assistant", "message": {}}'] * 9
    assert Amounts().after(silent, "assistant")[:4] == (9, 0, "", 0)


@pytest.mark.parametrize(
    "lie", ["-5", "NaN", "Infinity", "-Infinity", "1e308", "9" * 400, '"7"', "[]", "true", "2.5"]
)
def test_what_an_agent_says_of_its_usage_can_be_recorded_and_counted_whatever_it_is(lie: str) -> None:
    used = f'{{"input_tokens": {lie}, "output_tokens": 4, "{"x" * 5_000}": 1}}'
    cost, session = f'"total_cost_usd": {lie}, "num_turns": {lie}', "s" * 5_000
    lines = [
        f'{{"type": "assistant", "message": {{"id": "m", "usage": {used}}}}}',
        f'{{"type": "result", "result": "done", {cost}, "session_id": "{session}", "usage": {used}}}',
    ]
    answer, seen = TOOLS["claude"].read(lines), Amounts().after(lines, "assistant")
    assert (answer.done, seen.turns) == (True, 1)
    assert 4 <= seen.tokens <= 6
    ended = AgentRunEnded(run="r", tokens=seen.tokens, usage=dict(answer.usage))
    assert AgentRunEnded.model_validate_json(ended.model_dump_json()) == ended
    assert len(ended.model_dump_json()) < 1_000
    assert 0 <= cost_in(ended.usage) <= 2.5


def test_of_any_program_the_exit_code_decides_and_the_end_of_its_output_is_the_answer() -> None:
    answer = TOOLS["command"].read(["first", "x" * 10_000])
    assert (answer.done, len(answer.text)) == (None, MOST_TEXT)
    assert failure_of(answer, 0, "") == ""
    assert failure_of(RunAnswer(error="no disk"), 3, "") == "it exited with status 3: no disk"
    assert failure_of(RunAnswer(), -9, "") == "it was killed by SIGKILL"
    assert failure_of(RunAnswer(), -123, "") == "it was killed by signal 123"
    assert failure_of(RunAnswer(), None, "") == "it ended while Pulse was not there to see how"


def test_an_answer_without_an_exit_code_is_believed_and_what_was_stopped_has_failed() -> None:
    assert failure_of(RunAnswer(True), None, "") == ""
    assert failure_of(RunAnswer(True), 0, "it took longer than 1 h") == "it took longer than 1 h"
    assert failure_of(RunAnswer(False), 0, "") == "it says that it failed"


VALUES = {
    "prompt": "do {model} $(x)",
    "prompt_file": "/p",
    "workspace": "/w",
    "model": "m1",
    "task": "t",
    "title": "T",
}


@pytest.mark.parametrize(
    ("kind", "command", "args", "argv"),
    [
        ("command", ("agent", "--dir={workspace}", "{prompt}", "{other}"), ("-v",),
         ("agent", "--dir=/w", "do {model} $(x)", "{other}", "-v")),
        ("claude", (), ("--max-turns", "9"),
         ("claude", "-p", "--output-format", "stream-json", "--verbose", "--model", "m1", "--max-turns", "9")),
        ("codex", ("/opt/codex",), (),
         ("/opt/codex", "exec", "--json", "--skip-git-repo-check", "--model", "m1", "-")),
        ("cursor", (), (), ("cursor-agent", "-p", "--force", "--trust", "--output-format", "stream-json", "--model", "m1",
                            "do {model} $(x)")),
        ("hermes", (), (), ("hermes", "chat", "-Q", "--model", "m1", "-q", "do {model} $(x)")),
    ],
)  # fmt: skip
def test_a_command_line_is_filled_in_once_and_never_by_a_shell(
    kind: str, command: tuple[str, ...], args: tuple[str, ...], argv: tuple[str, ...]
) -> None:
    assert fill(TOOLS[kind].argv(command, args, "m1", 0.0), VALUES) == argv


LOGINS = [
    ("claude", 1, "Not logged in · Please run /login"),
    ("codex", 1, "unexpected status 401 Unauthorized: Missing bearer or basic authentication in header"),
    (
        "cursor",
        1,
        "Error: Authentication required. Please run 'cursor-agent login' first, or set CURSOR_API_KEY",
    ),
    ("hermes", 1, "No inference provider configured. Run 'hermes model' to choose a provider and model"),
    ("command", 77, "whatever it says"),
]


@pytest.mark.parametrize(("kind", "code", "words"), LOGINS)
def test_who_is_not_logged_in_is_known_by_what_its_program_says(kind: str, code: int, words: str) -> None:
    agent = AgentSettings.model_validate({"name": "ada", "kind": kind, "command": ["a"]})
    answer = TOOLS[kind].read([words])
    assert words in answer.error
    assert kind_of(answer, code, "", agent) is FailureKind.LOGIN
    assert kind_of(RunAnswer(error="no"), code + 1, "", agent) is FailureKind.CRASH
    assert kind_of(answer, code, "it took too long", agent) is FailureKind.BOUND


def test_something_follows_from_every_kind_of_failure() -> None:
    assert set(CONSEQUENCES) == set(FailureKind)


def test_every_kind_of_the_settings_is_known() -> None:
    assert set(get_args(AgentSettings.model_fields["kind"].annotation)) == set(TOOLS)


def test_without_a_model_none_is_named() -> None:
    assert "--model" not in TOOLS["claude"].argv((), (), "", 0.0)
