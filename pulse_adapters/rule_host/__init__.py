"""The rule host: folds the plugins' and the engine's rules in a confined child process.

The daemon's side starts it, sends it only what is new, and waits for one deadline at most. The child's side keeps a
replica of the log's state and the samples, confines itself before it loads any of the authors' code, and answers with
verdicts. Everything that the child sends is validated.
"""
