"""The machine Pulse runs on: its clock, its processes, its vital signs, and the hands that start and end things.

Linux only. Nothing here decides whether something should run, and nothing here is ever run through a shell.
"""
