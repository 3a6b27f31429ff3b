"""OpenClaw gateways: their sessions and configs, of which the last good one is put back when a new one does not boot.

Whether a gateway and its channels are well is asked as of an LLM endpoint, and its process is guarded like any other one.
"""
