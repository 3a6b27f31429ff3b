"""The host of a URL, and whether it is local."""

from ipaddress import ip_address
from urllib.parse import urlsplit


def host_of(url: str) -> str:
    """The host of a URL; empty if it has none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def is_address(host: str) -> bool:
    """Whether this is an IP address and not a name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_here(url: str) -> bool:
    """Whether it is on this machine's loopback, which no outage of a network reaches."""
    host = host_of(url)
    return host == "localhost" or (is_address(host) and ip_address(host).is_loopback)
