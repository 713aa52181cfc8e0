"""Surrogates that do everything that a surrogate should not do. They run in workers of a gateway
under test, which finds this file by its directory."""

from __future__ import annotations

import os
import signal
import sys
import time

from lasthop.surrogate import Answer, Decision, Mail, Relay, Surrogate


class Good(Surrogate):
    """Answers requests, and counts everything else."""

    def to_device(self, mail: Mail) -> Decision | None:
        if mail.body == b"count?":
            return Answer(str(self.state.get("count", 0)))
        self.state["count"] = self.state.get("count", 0) + 1
        return Relay(title=str(self.state["count"]))


class Loop(Surrogate):
    """Never comes back."""

    def to_device(self, mail: Mail) -> Decision | None:
        while True:
            pass


class Sleeper(Surrogate):
    """Waits for somebody else for ever, deaf to everything."""

    def to_device(self, mail: Mail) -> Decision | None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(1_000_000)
        return None


class Hog(Surrogate):
    """Takes all memory there is."""

    def to_device(self, mail: Mail) -> Decision | None:
        hoard = []
        while True:
            hoard.append(bytes(1 << 24))


class Quitter(Surrogate):
    """Ends the process, in the way that the message says."""

    def to_device(self, mail: Mail) -> Decision | None:
        if mail.body == b"exit":
            sys.exit("enough")
        if mail.body == b"_exit":
            os._exit(7)
        if mail.body == b"abort":
            os.abort()
        if mail.body == b"interrupt":
            raise KeyboardInterrupt
        return None


class Forker(Surrogate):
    """Has children: one that comes back as if it were the worker, one that stays for ever."""

    def to_device(self, mail: Mail) -> Decision | None:
        if mail.body == b"twin":
            os.fork()
            return None
        child = os.fork()
        if not child:
            time.sleep(1_000_000)
        self.state["child"] = child
        return Answer(str(child))


class Chatterbox(Surrogate):
    """Prints far too much, and not to the gateway's liking."""

    def to_device(self, mail: Mail) -> Decision | None:
        for _ in range(2000):
            print("bla " * 100)
        os.write(1, bytes(range(256)) * 100)
        os.write(2, b"\xff" * 100_000)
        return Answer("said")


class Liar(Surrogate):
    """Says things that are no verdict, past everything that keeps it from it."""

    def to_device(self, mail: Mail) -> Decision | None:
        for descriptor in range(3, 1000):
            try:
                os.write(descriptor, b"\x00\x00\x00\x05hello")
            except OSError:
                continue
        time.sleep(1_000_000)
        return None


class Greedy(Surrogate):
    """Wants to remember more than it may, and to send more than there is room for."""

    def to_device(self, mail: Mail) -> Decision | None:
        if mail.body == b"state":
            self.state["all"] = bytes(2 << 20)
        return Answer(bytes(2 << 20)) if mail.body == b"answer" else None


class Unborn(Surrogate):
    """Does not even take its place."""

    def __init__(self) -> None:
        raise RuntimeError("not today")
