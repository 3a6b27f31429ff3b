"""The program of the child that delivers messages through Apprise: `python -m pulse_adapters.notify.deliver`.

It is sent one order: `letters` (the messages, each with url, title, body and tone) and `seconds`, after which it ends
itself. For each message it sends `number` and `why` it did not arrive, which is empty for one that did, and
`is_unusable`: whether no other could go to this address. Its command line and its answers have no secrets.
"""

import logging
import os
import re
import signal
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from pulse_adapters.workers import child_side
from pulse_adapters.workers.threads import Pool
from pulse_core.ports.transport import UnusableAddress

INSTALL = "pip install 'upulse[notify]'"
NO_APPRISE = f"the package apprise is not installed; install it with: {INSTALL}"
NOT_UNDERSTOOD = UnusableAddress("Apprise does not understand this URL")
NOT_ACCEPTED = "it was not accepted"
SECRET = 6
"""Parts of a URL of at least so many characters are treated as secrets."""


CURRENT_MESSAGE: ContextVar[int] = ContextVar("CURRENT_MESSAGE", default=-1)
"""The number of the message that this context sends, also in a thread that Apprise has made for it."""


class AppriseLog(logging.Handler):
    """Keeps the last line that Apprise logged for each message: Apprise itself returns only whether it worked."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard: dict[int, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the record's message."""
        self.heard[CURRENT_MESSAGE.get()] = record.getMessage()


def main() -> None:
    """Deliver all messages of the order concurrently."""
    child_side.begin(memory=child_side.MEMORY)
    os.chdir("/")  # Apprise can't be imported where the daemon's own directory was deleted
    order = next(child_side.requests())
    signal.alarm(order["seconds"])
    messages: Sequence[Mapping[str, Any]] = order["letters"]
    logging.getLogger("apprise").addHandler(log := AppriseLog())
    logging.getLogger("apprise").propagate = False
    with Pool(len(messages), "message") as pool:
        for number, message in enumerate(messages):
            pool.submit(deliver, number, message, log)
    child_side.exit_at_once(0)  # threads that a plugin has left must not hold it up


def deliver(number: int, message: Mapping[str, Any], log: AppriseLog) -> None:
    """Send one message and report the outcome."""
    CURRENT_MESSAGE.set(number)
    try:
        why = send_message(message)
        if why == NOT_ACCEPTED:
            why = log.heard.get(number, why)
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises is why it did not arrive
        why = f"{type(error).__name__}: {error}"
    told = mask_secrets(why, message["url"])[:500]
    child_side.send({"number": number, "why": told, "is_unusable": isinstance(why, UnusableAddress)})


def send_message(message: Mapping[str, Any]) -> str:
    """Why it did not arrive; empty if it did."""
    try:
        import apprise  # takes a quarter of a second

        from pulse_adapters.workers.bounded_answers import bound_answers  # `requests` comes with it
    except ImportError:
        return NO_APPRISE
    bound_answers()
    apprise_client = apprise.Apprise(asset=apprise.AppriseAsset(app_id="Pulse", async_mode=False))
    if not apprise_client.add(message["url"]):
        return missing_packages(message["url"]) or NOT_UNDERSTOOD
    if "overflow=" not in message["url"]:
        for service in apprise_client:
            service.overflow_mode = apprise.OverflowMode.SPLIT  # what is too long for a service is not lost
    kind = getattr(apprise.NotifyType, message["tone"].upper())
    text = apprise.NotifyFormat.TEXT
    if apprise_client.notify(
        title=message["title"], body=message["body"], notify_type=kind, body_format=text
    ):
        return ""
    return NOT_ACCEPTED


def missing_packages(url: str) -> UnusableAddress | None:
    """Which packages that are not there the URL's service needs, in words; None if it needs none."""
    from apprise.plugins import N_MGR as SERVICES

    scheme = url.partition("://")[0].lower()
    if scheme not in SERVICES or SERVICES[scheme].enabled:
        return None
    needed = SERVICES[scheme].requirements.get("packages_required") or ()
    if not (packages := [needed] if isinstance(needed, str) else list(needed)):
        return UnusableAddress(
            "it needs what this machine does not have, as Apprise's page of that service says"
        )
    install = " ".join(f"'{package.replace(' ', '')}'" for package in packages)
    return UnusableAddress(
        f"it needs {', '.join(packages)}, which is not installed; install it with: pip install {install}"
    )


def mask_secrets(text: str, url: str) -> str:
    """The text without any part of the URL that might be a secret."""
    host = re.match(r"[^:]*://(?:[^/@]*@)?([^/:?#]*)", url)
    for part in re.split(r"[/:@?&=#]+", url):
        if len(part) >= SECRET and not (host and part == host[1]):
            text = text.replace(part, "***")
    return text


if __name__ == "__main__":
    main()
