"""A message with other content for one device, as its surrogate changed it; the content is stored
under a key of its own."""

from __future__ import annotations

from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Delivery, Item
from lasthop.message import Message
from lasthop.store.surrogates import RevisionRow, SurrogateChanges


class Revision(Item):
    """The item that stands for a message in one delivery, with changed content, until the delivery
    ends."""

    __slots__ = ("_deliveries", "_key", "origin")

    def __init__(
        self, deliveries: Deliveries, delivery: Delivery, message: Message, key: int, size: int
    ) -> None:
        """Give a delivery other content. Nothing of the delivery has left."""
        origin = delivery.item
        super().__init__(message, origin.decider)
        self._deliveries = deliveries
        self.origin = origin
        self.gates = origin.gates
        self.size = size
        self.resident = len(message.body) == size
        self._key = key
        delivery.item = self
        deliveries.keep(self)

    @property
    def stored_key(self) -> int:
        return self._key

    def unwrap(self, delivery: Delivery) -> Item:
        self._deliveries.forget(self)
        self.note(delivery.session.device.number, open=False)
        delivery.item = self.origin
        return self.origin

    def note(self, device: int, *, open: bool) -> None:  # noqa: A002
        """Write the revision with the open commit."""
        message = self.message
        changes = self._deliveries.commits.open.of(SurrogateChanges)
        changes.revisions[self._key] = RevisionRow(
            self._key,
            message.key,
            device,
            self.size,
            message.content_type,
            message.title,
            message.headers,
            message.rank,
            open,
        )
