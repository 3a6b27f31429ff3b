"""The action host: runs the engine's watchers and executors in a child process that can be ended with its whole tree.

They must act, so they may do what their user may do. The child has a session of its own, little of the daemon's
environment and none of its descriptors, resource limits, and a deadline for each call. Code of rules and projections,
which may do less, is not run here. The daemon's side validates everything that the child sends, and kills the child with
all its descendants when it hangs.
"""
