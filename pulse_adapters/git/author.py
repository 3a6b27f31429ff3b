"""The author of a commit, as git writes it: `Ada Lovelace <ada@example.org>`."""

import os
import pwd
import re
import socket
from collections.abc import Mapping

from pulse_core.model.errors import PulseError

COMMITTER: Mapping[str, str] = {
    "GIT_COMMITTER_NAME": "Pulse",
    "GIT_COMMITTER_EMAIL": "pulse@localhost",
    "GIT_AUTHOR_NAME": "Pulse",
    "GIT_AUTHOR_EMAIL": "pulse@localhost",
}
PULSE = "Pulse <pulse@localhost>"
_FORM = re.compile(r"(?P<name>[^<>\x00-\x1f]*[^<>\x00-\x20.,:;'\"]) <(?P<email>[^<>\x00-\x20]*)>")


def author_environment(author: str) -> Mapping[str, str]:
    """The environment for git that sets a commit's author; raises PulseError if it is no `NAME <EMAIL>`."""
    found = _FORM.fullmatch(author.strip())
    if found is None:
        raise PulseError(f"{author!r} is no author; write it as 'Ada Lovelace <ada@example.org>'")
    return {"GIT_AUTHOR_NAME": found["name"], "GIT_AUTHOR_EMAIL": found["email"]}


def login_author() -> str:
    """The author named by login and host of the user who runs this process."""
    try:
        login = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        login = f"user-{os.getuid()}"
    return f"{login} <{login}@{socket.gethostname() or 'localhost'}>"
