"""A text that was redacted is looked for, and where nobody could look is told, too."""

import os
from pathlib import Path

from pulse_adapters.files.text_search import files_with


def test_a_folder_that_cannot_be_listed_is_told_since_nobody_knows_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "near").write_text("a secret")
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):  # deeper than any path that the kernel takes
        os.mkdir("x" * 250, dir_fd=folder)
        inner = os.open("x" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(os.open("far", os.O_WRONLY | os.O_CREAT, dir_fd=folder))
    os.close(folder)
    near, deep = files_with([tmp_path, tmp_path / "gone"], ["a secret"])
    assert near == tmp_path / "near"
    assert deep.is_relative_to(tmp_path / ("x" * 250))
