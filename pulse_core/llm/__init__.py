"""LLM endpoints: probed periodically; the process behind one that fails is restarted, and a person is notified.

No model is called: an endpoint is a URL that answers with 2xx when it is well.
"""
