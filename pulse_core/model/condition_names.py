"""Names of conditions and senses that watchers, rules and executors share."""

NETWORK = "network"
"""The condition that the network is not as it should be, and the sense that finds it so."""

WELL, DOWN, DNS_ONLY, HTTP_ONLY, SLOW, DEGRADED = "", "down", "dns-only", "http-only", "slow", "degraded"
"""States of the network: everything answers; nothing does; only DNS fails; only HTTP fails; every answer is slow; some
targets fail."""

SYSTEM_RESOURCE = "system-resource"
"""The sense of the machine's vital signs."""

OF_MEMORY = ("memory", "pressure:memory", "swap")
"""The conditions that are answered by stopping somebody; an earlier one explains those behind it."""
