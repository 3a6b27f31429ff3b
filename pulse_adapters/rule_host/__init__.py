"""The rule host: plugins' rules and the engine's, folded by a child process that can do nothing else.

The daemon's side starts it, sends it only what is new, and waits for one deadline at most. The child's side keeps
its own picture of the log and the senses, locks itself in before it loads a line of the authors' code, and answers
verdicts. Nothing that the child says is believed before it was checked.
"""
