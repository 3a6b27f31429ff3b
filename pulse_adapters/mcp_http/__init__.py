"""Serves MCP over HTTP to programs of this machine: who may call by which name, and with which token."""
