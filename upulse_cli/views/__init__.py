"""What people see: tables, trees, lines and the live screen, drawn from plain JSON values.

Nothing here reads a file or asks the daemon.
"""
