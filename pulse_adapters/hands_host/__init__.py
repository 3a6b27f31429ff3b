"""The hands host: the engine's watchers and executors, at work in a child process that can be ended whole.

They must act, so nothing is forbidden to them that their user may do; but they run in a session of their own, with
little of the daemon's environment and none of its descriptors, within limits, and each call has its time. The daemon's
side believes nothing before it was checked, and ends the child with all that came out of it when it hangs.
"""
