"""Messages that wait until the driver's worker has matched them with the filters of their
subscribers.

One message is with the driver at a time. Lanes take turns, so that a sender of large messages keeps
other senders waiting for one of them only; the body of a waiting message may be in the store
only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Item
from lasthop.core.effects import Fetch, MatchFilters
from lasthop.core.feature import OrderKey
from lasthop.core.topics.filters import Filters, Sieve
from lasthop.message import Message
from lasthop_xml.xpath.reading import Reading


class FilterQueue:
    """Asks the driver to match one message after the other with the filters."""

    def __init__(self, deliveries: Deliveries, filters: Filters) -> None:
        self._deliveries = deliveries
        self._filters = filters
        self._waiting: dict[OrderKey, deque[tuple[Item, Sieve]]] = {}
        """The waiting messages by lane; the lane that is next comes first."""
        self._asked: tuple[Item, Sieve] | None = None
        self._fetching = False

    def put(self, lane: OrderKey, item: Item, sieve: Sieve) -> None:
        """Let a message wait until it is matched with the filters."""
        self._waiting.setdefault(lane, deque()).append((item, sieve))
        self._ask()

    def answered(self, message: int, reading: Reading) -> bool:
        """Handle the driver's answer about a message; return False if the driver was asked about
        another message."""
        if self._asked is None or self._asked[0].message.key != message:
            return False
        self._filters.judge(self._asked[1], reading)
        self._asked = None
        self._ask()
        return True

    def fetched(self, messages: Mapping[int, Message]) -> None:
        """Continue with a message whose body was in the store only."""
        if self._fetching and self._asked is not None:
            message = messages.get(self._asked[0].message.key)
            if message is not None:
                self._fetching = False
                self._match(message)

    def _ask(self) -> None:
        while self._asked is None and self._waiting:
            lane = next(iter(self._waiting))
            waiting = self._waiting.pop(lane)
            item, sieve = waiting.popleft()
            if waiting:
                self._waiting[lane] = waiting
            if not item.spreading:
                continue  # The message was taken back while it waited.
            self._asked = item, sieve
            if item.resident:
                self._match(item.message)
            else:
                self._fetching = True
                self._deliveries.effects.append(Fetch([item.message.key]))

    def _match(self, message: Message) -> None:
        changes = self._filters.changes()
        self._deliveries.effects.append(
            MatchFilters(message.key, message.app, message.content_type, message.body, changes)
        )
