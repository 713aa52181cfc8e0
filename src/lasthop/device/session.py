"""The session of a device with everything that this SDK can do: the core of the session, and its
parts in the order in which the core asks them.

A driver (asyncio, or the simulator on a virtual clock) calls the core; the application's own calls
go to the part that they concern.
"""

from __future__ import annotations

from lasthop.device.change import InboxContents
from lasthop.device.group_part import GroupPart
from lasthop.device.pieces.piece_part import PiecePart
from lasthop.device.preferences.preference_part import PreferencePart
from lasthop.device.ranked.ranked_part import RankedPart
from lasthop.device.requests.request_part import RequestPart
from lasthop.device.session_core import SessionCore
from lasthop.device.terms import DeviceTerms


class DeviceSession(SessionCore):
    """The session of one device, restored from the contents of its inbox."""

    def __init__(self, terms: DeviceTerms, held: InboxContents) -> None:
        super().__init__(terms, held)
        self.pieces = PiecePart(self, held)
        self.preferences = PreferencePart(self, self.pieces.transfers, held)
        self.requests = RequestPart(self, held)
        self.groups = GroupPart(self)
        self.ranked = RankedPart(self, held)
        parts = (self.preferences, self.requests, self.groups, self.ranked, self.pieces)
        self.attach(parts, held)
