"""Everything outside: one folder per outside thing, strangers to each other; `upulse_cli.wiring` joins them.

An adapter translates: outside errors become PulseError here, and nothing outside is decided here.
"""
