"""A `lasthop` command as a child of the demo: the command does not outlive the demo.

    python -m lasthop.runtime.demo.child PARENT_PID COMMAND...

On Linux the system sends the child a signal when the parent dies, however it dies.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from lasthop.runtime.cli import main

SET_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of Linux; other systems have nothing comparable that needs no thread."""


def follow(parent: int) -> None:
    """Have the system end this process when the parent ends."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(SET_DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() != parent:  # The parent died before the call.
        os._exit(1)


if __name__ == "__main__":
    follow(int(sys.argv[1]))
    main(sys.argv[2:])
