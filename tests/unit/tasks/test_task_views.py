"""What `upulse task show` says of a task's story."""

import pytest
from rich.console import Group

from upulse_cli.capabilities.tasks.views import task_page


@pytest.mark.parametrize(
    ("said", "result", "words"),
    [("task-released", "", "task-released"), ("task-acked", "all is well", "task-acked all is well")],
)
def test_what_was_refused_is_named(said: str, result: str, words: str) -> None:
    data = {"token": 1, "said": said, "result": result}
    event = {"at": "2026-11-29T12:00:00Z", "kind": "task-result-refused", "actor": "ada", "data": data}
    told: dict[str, object] = {
        "title": "mend it",
        "prompt": "",
        "result": "",
        "data": {},
        "held": None,
        "events": [event],
    }
    page = task_page(MissingNothing(told))
    assert isinstance(page, Group)
    assert str(page.renderables[-1]).endswith(f"task-result-refused ada  {words}")


def test_an_agent_whom_the_reason_names_is_named_once() -> None:
    why = "ada has 0 tasks, and may have 1; closed 0 and failed 0"
    for data, words in (({"agent": "ada", "why": why}, why), ({"agent": "ada", "why": "so"}, "ada so")):
        event = {"at": "2026-11-29T12:00:00Z", "kind": "task-assigned", "actor": "pulse", "data": data}
        page = task_page(MissingNothing(title="mend it", prompt="", result="", data={}, events=[event]))
        assert isinstance(page, Group)
        assert str(page.renderables[-1]).endswith(f"task-assigned       pulse  {words}")


@pytest.mark.parametrize("commits", [5, True, {"abc": "mend it"}, "abc mend it", []])
def test_a_page_has_no_commits_where_an_agent_has_said_something_else(commits: object) -> None:
    told = {"title": "mend it", "prompt": "", "result": "", "data": {"commits": commits}, "events": []}
    page = task_page(MissingNothing(told))
    assert isinstance(page, Group)
    assert "commits" not in [str(one) for one in page.renderables]


class MissingNothing(dict[str, object]):
    """A task of which nothing else is known."""

    def __missing__(self, name: str) -> None:
        return None
