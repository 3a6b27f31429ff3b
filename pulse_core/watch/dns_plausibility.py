"""Detects DNS answers that cannot be true. Pure."""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

LOCAL = tuple(
    ip_network(text)
    for text in (
        "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16",
        "::1/128", "fc00::/7", "fe80::/10",
    )
)  # fmt: skip
"""Addresses of private networks and of this machine."""

OWN_NAMES = frozenset(
    {
        "localhost", "localdomain", "local", "lan", "home", "corp", "intranet", "private", "internal", "test",
        "example", "invalid", "arpa",
    }
)  # fmt: skip
"""Top-level labels that public DNS does not have: such names may resolve to private addresses."""


def is_local(address: str) -> bool:
    """Whether it is a private address, or this machine's own."""
    return any(_read(address) in net for net in LOCAL)


def implausibility(name: str, addresses: Iterable[str], was_public: bool) -> str:
    """Why this answer cannot be true; empty if it may be.

    was_public: it had a public address before. Only then is a private one implausible: many names have private
    addresses for good reasons.
    """
    for address in addresses:
        it = f"the answer is {address}"
        if _read(address).is_unspecified:
            return f"{it}, which is no host's address"
        if _read(address).is_loopback and is_public(name):
            return f"{it}, which is this machine itself"
        if was_public and is_local(address):
            return f"{it}, a private address, where a public one was before"
    return ""


def is_public(name: str) -> bool:
    """Whether this is a name that the public DNS answers for."""
    _, dot, last = name.rstrip(".").rpartition(".")
    return bool(dot) and last.lower() not in OWN_NAMES


def _read(address: str) -> IPv4Address | IPv6Address:
    return ip_address(address)
