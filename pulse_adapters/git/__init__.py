"""The engine's repository: `engine/` holds main, `staging/` is the worktree for experiments, `revisions/` what runs.

Git runs without anybody's settings, the repository's own included, without hooks, and with nobody to be asked; what it
commits is read here, so that it visits no repository within. The daemon knows `git_client` alone, which has the rest of
this room run in a child. Nothing here imports or runs the engine's code.
"""
