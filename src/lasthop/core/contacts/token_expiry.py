"""Ends the contact of a device when its token expires: a connection may outlast a token."""

from __future__ import annotations

from collections.abc import Callable

from lasthop.clock import Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.registry import Device
from lasthop.core.session import Session


class TokenExpiries:
    """The timers of tokens that expire, at most one for each device and time."""

    def __init__(self, deliveries: Deliveries, end: Callable[[Session, Micros], None]) -> None:
        """`end` is called with the session of a device whose token has expired."""
        self._deliveries = deliveries
        self.end = end
        self._waiting: dict[int, Micros] = {}
        """The times for which timers were set last, by the number of the device."""
        self._signed: dict[int, Micros] = {}
        """When the signed token expires with which a device connected last, by the device's
        number; those that use the device's own token are not here."""

    def identified(self, device: Device, signed_until: Micros | None) -> None:
        """Note by which token a device connects: a signed one that expires, or its own."""
        if signed_until is None:
            self._signed.pop(device.number, None)
        else:
            self._signed[device.number] = signed_until

    def is_signed(self, device: Device) -> bool:
        """Whether a device connected last with a signed token of its user."""
        return device.number in self._signed

    def forget(self, device: Device) -> None:
        """Forget a device that was removed."""
        self._signed.pop(device.number, None)
        self._waiting.pop(device.number, None)

    def _expires(self, device: Device) -> Micros:
        """Return when the token ends by which a device is in contact; 0 if it does not."""
        return self._signed.get(device.number, device.record.token_expires)

    def watch(self, session: Session) -> None:
        """Set a timer for the token of a device, if the token expires."""
        device = session.device
        expires = self._expires(device)
        if expires and self._waiting.get(device.number) != expires:
            self._waiting[device.number] = expires
            self._deliveries.timers.add(expires, _Expiry(self, session, expires))

    def due(self, session: Session, expires: Micros, now: Micros) -> None:
        """End the contact, unless the device has got another token since the timer was set."""
        number = session.device.number
        if self._waiting.get(number) == expires:
            del self._waiting[number]
        if self._expires(session.device) == expires:
            self.end(session, now)


class _Expiry:
    """One timer of `TokenExpiries`."""

    __slots__ = ("_expires", "_expiries", "_session")

    def __init__(self, expiries: TokenExpiries, session: Session, expires: Micros) -> None:
        self._expiries = expiries
        self._session = session
        self._expires = expires

    def woken(self, now: Micros) -> None:
        self._expiries.due(self._session, self._expires, now)
