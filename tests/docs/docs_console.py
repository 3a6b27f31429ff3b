"""What a page shows at a prompt: its ```console blocks, as commands and the output that they promise."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXITS = re.compile(r"# exits (\d+)\s*$")


@dataclass(frozen=True)
class Command:
    """A command as typed, and the lines that the page shows below it."""

    text: str
    shown: tuple[str, ...]

    @property
    def exit(self) -> int:
        """The exit code that the page promises: `# exits N` behind the command, or else 0."""
        found = EXITS.search(self.text)
        return int(found[1]) if found else 0

    def missing(self, output: str) -> list[str]:
        """The shown lines that the output lacks; `…` stands for anything, and widths don't count."""
        said = [" ".join(line.split()) for line in output.splitlines()]
        return [line for line in self.shown if not any(pattern(line).search(one) for one in said)]


def pattern(shown: str) -> re.Pattern[str]:
    """A shown line as a pattern."""
    pieces = (" ".join(piece.split()) for piece in shown.split("…"))
    return re.compile(".*".join(map(re.escape, pieces)))


def blocks(page: Path, info: str) -> Iterator[str]:
    """The text of the page's fenced blocks of this kind."""
    return (found[2] for found in FENCE.finditer(page.read_text()) if found[1].strip() == info)


def commands(page: Path, info: str = "console") -> list[Command]:
    """The commands of a page, in order."""
    return [command for block in blocks(page, info) for command in typed(block)]


def typed(block: str) -> Iterator[Command]:
    """The commands of one block: `$ ` begins one, `> ` goes on with it, the rest is output."""
    text, shown = "", list[str]()
    for line in block.splitlines():
        if line.startswith("$ "):
            if text:
                yield Command(text, tuple(shown))
            text, shown = line[2:], []
        elif line.startswith("> "):
            text += "\n" + line[2:]
        elif line == ">":
            text += "\n"
        elif line.strip() and text:
            shown.append(line)
    if text:
        yield Command(text, tuple(shown))
