"""LLM endpoints: asked whether they answer; what serves one that does not is restarted, and a person is told.

Nothing is asked of a model: an endpoint is a URL that answers with 2xx when it is well.
"""
