"""The program of the child that sends heartbeats: `python -m pulse_adapters.metrics.heartbeat`.

Each request has `url` (or `env:NAME` of the variable that holds it) and `seconds`, how long it may take. Each reply says
`why` it was not answered, without the URL, which may hold a secret; nothing if it was. Only the standard library is
needed.
"""

import os
import urllib.error
import urllib.request
from http.client import HTTPException

from pulse_adapters.workers import child_side

AGENT = "Pulse"
NICE = 10


def main() -> None:
    """Send the requested heartbeats until the input ends."""
    child_side.begin(NICE)
    for order in child_side.requests():
        child_side.send({"why": send_heartbeat(order["url"], order["seconds"])})


def send_heartbeat(url: str, seconds: float) -> str:
    """Fetch the URL; returns why that failed, in one line, or empty."""
    name = url.removeprefix("env:")
    if name != url and not (url := os.environ.get(name, "")):
        return f"the environment variable {name} of [heartbeat] url is not set"
    if not url.startswith(("http://", "https://")):
        return f"what {name} holds is no http or https URL"
    try:
        asked = urllib.request.Request(url, headers={"User-Agent": AGENT})
        with urllib.request.urlopen(asked, timeout=seconds) as answer:
            answer.read(1)
    except urllib.error.HTTPError as error:
        return f"it was answered with {error.code}"
    except urllib.error.URLError as error:
        return _describe_error(error.reason)
    except (OSError, ValueError, HTTPException) as error:
        return _describe_error(error)
    return ""


def _describe_error(error: object) -> str:
    """The error in one line; one that is no OSError might quote the URL, so only its type is given."""
    words = (getattr(error, "strerror", None) or str(error)) if isinstance(error, OSError) else ""
    return " ".join(words.split()) or type(error).__name__


if __name__ == "__main__":
    main()
