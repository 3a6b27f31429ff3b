"""The hands host: the engine's watchers and executors, at work in a child process that can be ended whole.

They must act, so nothing is forbidden to them that their user may do, but to lay hands on the daemon; and they run in
a session of their own, with little of its environment and none of its descriptors, within limits, and each call has its
time. Code of rules and projections, which may do less, is not run here. The daemon's side believes nothing before it was
checked, and ends the child with all that came out of it when it hangs.
"""
