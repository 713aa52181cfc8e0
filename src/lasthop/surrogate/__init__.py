"""Surrogates: classes that applications install at the gateway to act for their devices.

    class Echo(Surrogate):
        def to_device(self, mail: Mail) -> Decision | None:
            return Answer(mail.body) if mail.reply_before else None

`docs/how-to/surrogates.md` tells how to write and install one.
"""

from lasthop.surrogate.actions import Answer, Decision, Drop, Relay
from lasthop.surrogate.caching import cacheable, request
from lasthop.surrogate.mail import Content, Mail, Way
from lasthop.surrogate.policies import CachePolicy, Entry, Lru, StaleWhileAway, TimeToLive
from lasthop.surrogate.state import State, StateTooLarge
from lasthop.surrogate.surrogate import Surrogate

__all__ = [
    "Answer",
    "CachePolicy",
    "Content",
    "Decision",
    "Drop",
    "Entry",
    "Lru",
    "Mail",
    "Relay",
    "StaleWhileAway",
    "State",
    "StateTooLarge",
    "Surrogate",
    "TimeToLive",
    "Way",
    "cacheable",
    "request",
]
