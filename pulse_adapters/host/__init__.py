"""The machine Pulse runs on: its clock, its processes, its resources, and the executors that start and end processes.

Linux only. Nothing here decides whether a process should run, and nothing is ever run through a shell.
"""
