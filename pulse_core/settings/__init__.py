"""Settings: frozen values, one group for each package, read once at the edge and passed down.

Nothing here opens a file; the adapter `pulse_adapters.config` does, and reports every fault with its line.
"""
