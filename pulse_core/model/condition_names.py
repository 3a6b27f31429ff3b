"""Names of conditions and watchers that watchers, rules and executors share."""

NETWORK = "network"
"""The condition of network trouble, and the watcher that raises it."""

WELL, DOWN, DNS_ONLY, HTTP_ONLY, SLOW, DEGRADED = "", "down", "dns-only", "http-only", "slow", "degraded"
"""States of the network: everything answers; nothing does; only DNS fails; only HTTP fails; every answer is slow; some
targets fail."""

SYSTEM_RESOURCE = "system-resource"
"""The watcher of the machine's resources."""

OF_MEMORY = ("memory", "pressure:memory", "swap")
"""The conditions that are answered by stopping a process; an earlier one explains those behind it."""
