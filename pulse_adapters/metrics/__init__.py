"""Exports Pulse's own state: metrics for Prometheus, traces for OpenTelemetry, a heartbeat.

What serves and exports is a child process of low priority, which reads what the daemon has written and asks it at most
once a second: nothing here can hold up a loop. Only `sidecars` runs in the daemon, and it imports none of the rest.
"""
