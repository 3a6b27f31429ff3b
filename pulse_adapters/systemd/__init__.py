"""systemd, as the manager that runs the daemon: its notify socket, our unit file, and systemctl.

Nothing here decides when to start or stop, and nothing here guards processes: units that Pulse guards are
`pulse_adapters.host`'s business.
"""
