"""A delivery that a feed decides about, or by which it speaks to the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lasthop.core.delivery import Delivery, Item

if TYPE_CHECKING:
    from lasthop.core.feeds.keeper import Keeper
    from lasthop.core.session import Session


class FeedDelivery(Delivery):
    """It waits until its feed lets it go, and its number says less than that of others: a message
    that is kept on the device has been seen by nobody yet."""

    ranked = True

    __slots__ = ("arrived", "feed", "followed", "forget", "keep", "shown", "stamp", "turn")

    def __init__(self, item: Item, session: Session, now: int, keeper: Keeper | None) -> None:
        super().__init__(item, session, now)
        self.feed = keeper
        """Who decides about it; nobody any more when the subscription has ended."""
        self.arrived = False
        """Whether the feed knows of it: not before its deliver_after."""
        self.keep = False
        """It goes into the device's queue."""
        self.stamp = 0
        """When its turn to leave is, among keys; 0 while it is not to leave."""
        self.turn = 0
        """Among those with the same stamp."""
        self.forget = False
        """The device will be told to forget it as soon as it has it."""
        self.shown: tuple[int, ...] | None = None
        """Only of instructions: what the application has had when it has followed them."""
        self.followed = True
        """False once the device has said that it did not do as instructed."""

    @property
    def instructs(self) -> bool:
        """Whether it is the feed's word and not a message of the topic."""
        return self.shown is not None

    def ended(self) -> None:
        if self.feed is not None:
            self.feed.ended(self)
