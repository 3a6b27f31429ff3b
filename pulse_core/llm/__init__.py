"""LLM endpoints: probed periodically; the process behind one that fails is restarted, and a person is notified.

Pulse itself calls no model: an endpoint is a URL that answers with 2xx when it is well, and a gateway has several of them.
"""
