"""The program in the page on guidance works as it stands there: it is run against a real server."""

import asyncio
import re
from pathlib import Path
from typing import Any

from tests.unit.guidance.test_guidance_command import serving, write

PAGE = (Path(__file__).parents[2] / "docs/guidance.md").read_text()
ENDPOINT = "http://127.0.0.1:8765/mcp"


def test_the_program_of_the_page_replans_once_for_a_change_and_works_on(tmp_path: Path) -> None:
    (program,) = re.findall(r"^```python\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert ENDPOINT in program
    project, did = tmp_path / "project", list[str]()
    project.mkdir()

    async def work() -> bool:
        did.append("work")
        if len(did) == 1:
            write(project, "guidance.md", "a smaller patch")
        return len(did) < 4

    async def replan(context: str) -> None:
        assert "a smaller patch" in context
        did.append("replan")
        write(project, "plan.md", "smaller")

    with serving(tmp_path / "home", project) as (url, _):
        names: dict[str, Any] = {}
        exec(program.replace(ENDPOINT, url), names)  # the page's own words
        asyncio.run(names["work_with_guidance"](work, replan))
    assert did == ["work", "replan", "work", "work"]
