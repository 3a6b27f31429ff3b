"""Child processes of Pulse: starts them, exchanges messages, applies limits and deadlines, and ends their trees.

Everything that Pulse has done by a process of its own goes through here: nothing else in the tree starts one for the
daemon, and nothing else reads what one says. What a worker does is not known here.

    daemon's side    environment · spawn · worker (one life) · conversation (questions and answers) · host_process
                     control_group · host_groups (what ends with a host, and what it may have)
    between them     descriptors · messages
    worker's side    child_side · host_side · drop_privileges

A worker has a session of its own, default signals, no descriptor of the daemon's, and an environment without what is
meant for the daemon alone. The two talk over two private pipes in frames of JSON; what a worker prints is no message,
and only the end of it is kept, for the words in which its end is told. Whatever is wrong with a message is a
`WorkerFault`: it ends that worker, and nothing else. What holds it is the daemon's side; the worker's side imports
little, since several workers live as long as the daemon does.
"""
