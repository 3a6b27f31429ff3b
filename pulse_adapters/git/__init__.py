"""The engine's repository: `engine/` holds main, `staging/` is the worktree for experiments, `revisions/` what runs.

Git runs with its hooks off, the user's and the system's configuration unread, programs that the repository's own
settings name overruled, and nobody to be asked. GitPython is imported only by `git_command`; the daemon knows `git_client`
alone, which has the rest of this room run in a child. Nothing here imports or runs the engine's code.
"""
