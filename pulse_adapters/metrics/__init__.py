"""Exports Pulse's own state: metrics for Prometheus, traces for OpenTelemetry, a heartbeat.

All of it happens in child processes of low priority, which read what the daemon has written and ask it at most once a
second: nothing here can hold up a loop. Only `sidecars` runs in the daemon, and it imports none of the rest.
"""
