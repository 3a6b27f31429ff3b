"""Finds files in which one of some texts can be read, as it is or as JSON writes it."""

import json
import os
import re
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

from pulse_adapters.workers.plain_file import has_match, open_plain


def files_with(directories: Collection[Path], texts: Collection[str]) -> Iterator[Path]:
    """The files below these directories that hold one of the texts, or may, and the folders that can't be listed.

    No link is followed, no socket opened.
    """
    spelled = {json.dumps(text, ensure_ascii=ascii)[1:-1] for text in texts for ascii in (True, False)}
    wanted = sorted((text.encode(errors="replace") for text in {*texts, *spelled}), key=len)
    if not wanted:
        return
    pattern, longest = re.compile(b"|".join(map(re.escape, wanted))), len(wanted[-1])
    unread = list[OSError]()
    for directory in directories:
        for folder, _, names in os.walk(directory, onerror=unread.append):
            for name in sorted(names):
                path = Path(folder, name)
                try:
                    if stat.S_ISREG(path.lstat().st_mode) and _holds(path, pattern, longest):
                        yield path
                except OSError:
                    yield path  # nobody knows
    yield from (Path(one.filename) for one in unread if not isinstance(one, FileNotFoundError))  # likewise


def _holds(path: Path, pattern: re.Pattern[bytes], longest: int) -> bool:
    with open(open_plain(path), "rb") as file:
        return has_match(file, pattern, longest)
