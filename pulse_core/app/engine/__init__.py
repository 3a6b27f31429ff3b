"""The engine from a person's side: promote and rollback, replay, shadow and dev, and what became of it.

Nothing here changes what runs: it asks the daemon, which alone does. Nothing here runs an author's code: that happens
in hosts and in the sandbox, behind ports.
"""
