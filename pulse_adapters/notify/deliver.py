"""The program of the child that delivers messages through Apprise: `python -m pulse_adapters.notify.deliver`.

It reads one JSON object from its standard input: `letters` (each with url, title, body and good) and `seconds`, after
which it ends itself. For each letter it prints a line as soon as it knows: `[number, why it did not arrive]`, the
second being empty for one that did. No secret stands in its command line, and none is printed.
"""

import json
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

NO_APPRISE = "the package apprise is not installed; install it with: pip install 'upulse[notify]'"
NOT_UNDERSTOOD = "Apprise does not understand this URL"
NOT_ACCEPTED = "it was not accepted"
SECRET = 6
"""Characters from which on a part of an URL might be one."""


LETTER: ContextVar[int] = ContextVar("LETTER", default=-1)
"""The number of the letter that is being sent here, or in a thread that Apprise has made for it."""


class AppriseLog(logging.Handler):
    """Remembers the last thing that Apprise has said of each letter: it returns only whether it worked."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard: dict[int, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Remember it."""
        self.heard[LETTER.get()] = record.getMessage()


def main() -> None:
    """Deliver what standard input says, all letters at the same time."""
    order = json.load(sys.stdin)
    signal.alarm(order["seconds"])
    letters: Sequence[Mapping[str, Any]] = order["letters"]
    logging.getLogger("apprise").addHandler(ear := AppriseLog())
    logging.getLogger("apprise").propagate = False
    threads = [
        threading.Thread(target=deliver, args=(number, letter, ear), daemon=True)
        for number, letter in enumerate(letters)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.stdout.flush()
    os._exit(0)  # threads that a plugin has left must not hold it up


def deliver(number: int, letter: Mapping[str, Any], ear: AppriseLog) -> None:
    """Send one letter, and print how that went."""
    LETTER.set(number)
    try:
        why = sent(letter)
        if why == NOT_ACCEPTED:
            why = ear.heard.get(number, why)
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises is why it did not arrive
        why = f"{type(error).__name__}: {error}"
    # One write a line: print writes the line break by itself, and other letters are sent meanwhile.
    sys.stdout.write(f"{json.dumps([number, masked(why, letter['url'])[:500]])}\n")
    sys.stdout.flush()


def sent(letter: Mapping[str, Any]) -> str:
    """Why it did not arrive, or nothing."""
    try:
        import apprise  # takes a quarter of a second
    except ImportError:
        return NO_APPRISE
    postman = apprise.Apprise(asset=apprise.AppriseAsset(app_id="Pulse", async_mode=False))
    if not postman.add(letter["url"]):
        return NOT_UNDERSTOOD
    if "overflow=" not in letter["url"]:
        for service in postman:
            service.overflow_mode = apprise.OverflowMode.SPLIT  # what is too long for a service is not lost
    kind = apprise.NotifyType.SUCCESS if letter["good"] else apprise.NotifyType.WARNING
    text = apprise.NotifyFormat.TEXT
    if postman.notify(title=letter["title"], body=letter["body"], notify_type=kind, body_format=text):
        return ""
    return NOT_ACCEPTED


def masked(text: str, url: str) -> str:
    """The text without any part of the URL that might be a secret."""
    host = re.match(r"[^:]*://(?:[^/@]*@)?([^/:?#]*)", url)
    for part in re.split(r"[/:@?&=#]+", url):
        if len(part) >= SECRET and not (host and part == host[1]):
            text = text.replace(part, "***")
    return text


if __name__ == "__main__":
    main()
