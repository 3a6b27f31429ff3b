"""A daemon's status with something in every place."""

from typing import Any

SYSTEM: dict[str, Any] = {
    "cpu": 0.5,
    "cpu_max": 0.75,
    "memory": 0.25,
    "memory_available": 3_000,
    "memory_total": 4_000,
    "swap": 0.125,
    "swap_total": 800,
    "load1": 1.5,
    "load5": 2.5,
    "load15": 3.5,
    "self_cpu": 0.01,
    "self_rss": 40_000,
    "loop_late_ms": 2.5,
    "psi": {"memory": {"some": 0.2, "full": 0.1}},
    "disks": {"/": {"used": 0.5, "free": 7, "inodes": 0.25}, "/gone": {"error": "no answer"}},
    "trigger": "memory",
}
STANDING: dict[str, Any] = {
    "daemon": {"state": "running", "pid": 7, "since": "2026-01-01T00:00:00.500000Z", "version": "1"},
    "paused": None,
    "log": {"rows": 42, "verified": None, "damage": None, "unwritten": 3},
    "processes": [
        {"name": "gateway", "state": "up", "pid": 8, "since": None, "restarts": 2, "why": ""},
        {"name": 'odd "one"\n', "state": "flapping", "pid": None, "since": None, "restarts": 9, "why": ""},
    ],
    "effects": {"pending": 1, "executing": 2, "acked": 3, "failed": 4, "unknown": 5, "cancelled": 6},
    "conditions": [
        {
            "name": "disk:/",
            "state": "high",
            "since": "2026-01-01T00:00:00.000000Z",
            "evidence": "",
            "tried": 1,
        }
    ],
    "notices": {"standing": 2, "waiting": 1},
    "tick": {
        "count": 100,
        "last_ms": 0.5,
        "p99_ms": 8.0,
        "durations": {"bounds_ms": [1.0, 5.0], "counts": [90, 9, 1], "sum_ms": 60.0},
    },
    "engine": {
        "commit": "c0ffee",
        "runs": "c0ffee",
        "errors": 3,
        "quarantined": {"tidy": "slow"},
        "restarts": 4,
        "rolled_back": "2026-01-01T00:00:00.000000Z",
    },
    "since_start": {
        "rollbacks": 2,
        "restarts": {"bounds_ms": [100.0, 1000.0], "counts": [1, 2, 3], "sum_ms": 9000.0},
        "effects": {"restart-process": {"bounds_ms": [10.0], "counts": [4, 1], "sum_ms": 500.0}},
    },
    "shed": {"level": 2, "measures": ["a", "b"], "evidence": "much"},
    "vitals": {
        "system-resource": SYSTEM,
        "process-alive": {"gateway": {"up": True, "pid": 8}},
        "network": {"state": "", "targets": {"one.example": {"ok": True, "latency_ms": 12.5}}},
        "llm": {"http://127.0.0.1:4000/": {"ok": False, "latency_ms": None, "trouble": "refused"}},
    },
}
