"""Probes the network: names by DNS, pages by HTTP, in a child process that can be killed if it hangs.

`prober` lives in the daemon; `probe` is the child's program, and `dns` and `http` are imported only there. Nothing here
decides what an answer means.
"""
