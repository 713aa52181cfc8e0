"""Starts a program as a child of chaos: it dies with its parent, frozen or not, and may live on a
small disk.

    python -m lasthop.runtime.chaos.launcher PARENT_PID KEEPER_PID PROGRAM...

A holder of 0 stands for the usual disk.
"""

from __future__ import annotations

import os
import signal
import sys

from lasthop.runtime.chaos.small_disk import join
from lasthop.runtime.demo.child import follow

if __name__ == "__main__":
    if int(sys.argv[2]):
        join(int(sys.argv[2]))
    # After joining: a change of credentials would take the death signal back.
    follow(int(sys.argv[1]), signal.SIGKILL)
    os.execvp(sys.argv[3], sys.argv[3:])
