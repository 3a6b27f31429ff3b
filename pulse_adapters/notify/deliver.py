"""The program of the child that delivers messages through Apprise: `python -m pulse_adapters.notify.deliver`.

It is sent one order: `letters` (each with url, title, body and good) and `seconds`, after which it ends itself. For
each letter it says as soon as it knows `number` and `why` it did not arrive, which is empty for one that did. No secret
stands in its command line, and none is said.
"""

import logging
import re
import signal
import threading
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from pulse_adapters.workers import child_side

NO_APPRISE = "the package apprise is not installed; install it with: pip install 'upulse[notify]'"
NOT_UNDERSTOOD = "Apprise does not understand this URL"
NOT_ACCEPTED = "it was not accepted"
SECRET = 6
"""Characters from which on a part of an URL might be one."""


CURRENT_MESSAGE: ContextVar[int] = ContextVar("CURRENT_MESSAGE", default=-1)
"""The number of the letter that is being sent here, or in a thread that Apprise has made for it."""


class AppriseLog(logging.Handler):
    """Remembers the last thing that Apprise has said of each letter: it returns only whether it worked."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard: dict[int, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Remember it."""
        self.heard[CURRENT_MESSAGE.get()] = record.getMessage()


def main() -> None:
    """Deliver what is ordered, all letters at the same time."""
    child_side.begin()
    order = next(child_side.requests())
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
    child_side.exit_at_once(0)  # threads that a plugin has left must not hold it up


def deliver(number: int, letter: Mapping[str, Any], ear: AppriseLog) -> None:
    """Send one letter, and say how that went."""
    CURRENT_MESSAGE.set(number)
    try:
        why = send_message(letter)
        if why == NOT_ACCEPTED:
            why = ear.heard.get(number, why)
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises is why it did not arrive
        why = f"{type(error).__name__}: {error}"
    child_side.send({"number": number, "why": mask_secrets(why, letter["url"])[:500]})


def send_message(letter: Mapping[str, Any]) -> str:
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


def mask_secrets(text: str, url: str) -> str:
    """The text without any part of the URL that might be a secret."""
    host = re.match(r"[^:]*://(?:[^/@]*@)?([^/:?#]*)", url)
    for part in re.split(r"[/:@?&=#]+", url):
        if len(part) >= SECRET and not (host and part == host[1]):
            text = text.replace(part, "***")
    return text


if __name__ == "__main__":
    main()
