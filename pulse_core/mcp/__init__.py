"""Agents that are no runs of Pulse's own ask it over MCP, and do tasks: who calls is decided by a token.

What they may change is bounded here; what they are told comes from the same functions as what people are shown.
"""
