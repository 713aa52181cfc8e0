"""The ways of a device to its gateway: which there are, how they do, and which the device uses."""

from __future__ import annotations

from collections.abc import Callable

from lasthop.clock import Micros
from lasthop.device.api.device_api import DeviceApi
from lasthop.device.way import MOST_WAYS, GatewayWay, Origin, WayEvent, WayStatus
from lasthop.errors import InvalidRequest


class WayApi(DeviceApi):
    """The part of a device that chooses how it reaches the gateway."""

    def __init__(self) -> None:
        super().__init__()
        self._on_way: list[Callable[[WayEvent], None]] = []

    @property
    def ways(self) -> list[WayStatus]:
        """The ways that the device has, each with its state; the first is tried first."""
        self.opened()
        return self._contact.ways.status()

    def add_way(self, way: GatewayWay) -> None:
        """Add a way to the gateway, or change the credential and preference of one. Raises
        InvalidRequest if the URL is invalid, or the device has too many ways."""
        self.opened()
        self._parse(way.url)
        ways = self._contact.ways
        own = [each for each in ways.status() if each.way.origin is Origin.APPLICATION]
        if ways.find(way) is None and len(own) >= MOST_WAYS:
            raise InvalidRequest(f"a device has at most {MOST_WAYS} ways")
        self._contact.change(lambda ways, now: ways.add(way, now))

    def remove_way(self, way: GatewayWay) -> None:
        """Use a way no longer, and close its channel; nothing happens if the device does not have
        it."""
        self.opened()
        self._contact.change(lambda ways, now: ways.remove(way, now))

    def on_way(self, callback: Callable[[WayEvent], None]) -> Callable[[WayEvent], None]:
        """Call a function with every WayUp, WaySuspect, WayDown and NoWay. Usable as a
        decorator."""
        self._on_way.append(callback)
        return callback

    def moved(self, *, link: str | None, network: str | None = None) -> None:
        """Report that the device is on another network now, and reconnect over that network at
        once. `link` and `network` are as for `Device`; ways with a link of their own keep it."""
        self._contact.moved(link, network)

    def hurry(self) -> None:
        """Try again at once what rests after a failure, because something may have changed."""
        self.opened()
        self._contact.change(lambda ways, now: ways.hurry(now))

    async def join(
        self, url: str | None = None, *, link: str | None = None, network: str | None = None
    ) -> None:
        """Keep one more channel open beside the others, and send over it from now on. Messages from
        the gateway may come over any channel and are still handed over in order. Without `url` the
        channel goes to the present address of the gateway.

        Without contact the channel is opened when there is contact; whenever it ends, it is opened
        again, until `remove_way` or `switch`. Raises Conflict if the channel cannot be opened now,
        and LinkClosed if the link has used up a limit; a channel that cannot be opened now is
        tried again later.
        """
        self.opened()
        await self._contact.join(self._way(url, link, network))

    async def switch(
        self, url: str | None = None, *, link: str | None = None, network: str | None = None
    ) -> None:
        """Replace all channels by a new one, and prefer its way from now on. The old channels end
        when the new one is open, so that no message waits and no acknowledged message is sent
        again; their ways are used again if the new one fails. Without contact the switch takes
        place as soon as it can. Arguments and errors are those of `join`."""
        self.opened()
        await self._contact.switch(self._way(url, link, network))

    def _way(self, url: str | None, link: str | None, network: str | None) -> GatewayWay:
        if url is not None:
            self._parse(url)
        way = GatewayWay(url if url is not None else self._contact.main.url, link, network)
        found = self._contact.ways.find(way)
        return found.way if found is not None else way

    @property
    def links(self) -> tuple[str, ...]:
        """The links of the open channels; the device sends over the last."""
        return self._contact.labels

    @property
    def channels(self) -> int:
        """The number of open channels to the gateway."""
        return self._contact.links

    @property
    def closed_links(self) -> dict[str, Micros]:
        """The links that have used up a limit of the device's preferences, each with the time (UTC,
        microseconds) until which it stays closed."""
        now = self._clock.now()
        return {link: until for link, until in self._contact.closed.items() if until > now}

    def _report(self, event: WayEvent) -> None:
        for callback in self._on_way:
            callback(event)

    def _parse(self, url: str) -> None:
        """Check the URL of a gateway; raise InvalidRequest."""
        raise NotImplementedError
