"""Administration of a data directory that no gateway is using.

The gateway itself does the work, woken for one change: what it allows and records is the same as
over any door.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import msgspec

from lasthop.access.rest.administration import (
    DeviceChange,
    NewCredential,
    NewDevice,
    checked_address,
)
from lasthop.access.rest.answers import credential_of, device_of
from lasthop.clock import Micros
from lasthop.core.gateway import Gateway, Identity
from lasthop.core.names import parse_target
from lasthop.core.registry import Device
from lasthop.errors import StoreError
from lasthop.message import Target, TargetKind
from lasthop.runtime.cli.administration import Row
from lasthop.runtime.clock import SystemClock
from lasthop.runtime.failure import Failure
from lasthop.store.sqlite import SqliteStore

T = TypeVar("T")

_EVERYONE = Target(TargetKind.APP, "")


class AtStore:
    """A data directory."""

    def __init__(self, data: Path, app: str) -> None:
        self._data = data
        self._app = app

    def add_credential(self, name: str, scopes: list[str], certificate: str | None = None) -> Row:
        new = _checked({"name": name, "scopes": scopes, "certificate": certificate}, NewCredential)
        token = secrets.token_urlsafe(32)

        def act(gateway: Gateway, now: Micros) -> Row:
            if new.certificate is not None:
                gateway.admin.certify(new.certificate, self._app, new.name, set(new.scopes), now)
                certified = gateway.credentials.certified(new.certificate)
                assert certified is not None
                return _plain(credential_of(certified)) | {"certificate": new.certificate}
            gateway.admin.admit(token, self._app, new.name, set(new.scopes), now)
            row = gateway.credentials.find(token)
            assert row is not None
            return _plain(credential_of(row, token))

        return self._change(act)

    def credentials(self) -> list[Row]:
        rows = self._change(lambda gateway, _: gateway.credentials.of(self._app))
        return [_plain(credential_of(row)) for row in rows]

    def revoke(self, name: str) -> int:
        return self._change(lambda gateway, _: gateway.admin.dismiss(self._app, name))

    def register(
        self,
        name: str,
        *,
        user: str,
        topics: list[str],
        routes: list[Row] | None = None,
        addresses: list[str] | None = None,
    ) -> Row:
        fields = {"name": name, "user": user, "subscriptions": topics, "routes": routes or []}
        fields["addresses"] = addresses or []
        new = _checked(fields, NewDevice)
        token = secrets.token_urlsafe(32)

        def act(gateway: Gateway, now: Micros) -> Row:
            device = gateway.admin.register(self._app, new.name, new.record(token, now), now)
            return _info(gateway, device, token)

        return self._change(act)

    def change(self, name: str, changes: Row) -> Row:
        checked = _checked(changes, DeviceChange).changes()

        def act(gateway: Gateway, now: Micros) -> Row:
            return _info(gateway, gateway.admin.amend(self._app, name, now, **checked))

        return self._change(act)

    def devices(self) -> list[Row]:
        def act(gateway: Gateway, _: Micros) -> list[Row]:
            found = gateway.registry.reach(self._app, _EVERYONE)
            return [_info(gateway, device) for device in found.values()]

        return self._change(act)

    def remove(self, name: str, *, erase: bool) -> None:
        device = self._change(lambda gateway, now: gateway.admin.remove(self._app, name, now))
        if erase:
            with closing(self._open()) as store:
                start: int | None = 0
                while start is not None:
                    start = store.erase_device(device.number, start=start).next

    def addresses(self) -> list[Row]:
        found = self._change(lambda gateway, _: gateway.pushes.addresses.targets(self._app))
        return [{"address": a, "target": str(t)} for a, t in sorted(found.items())]

    def point(self, address: str, target: str | None) -> Row:
        short = checked_address(address, "address")
        kept = parse_target(target) if target is not None else None
        self._change(lambda gateway, _: gateway.pushes.point(self._app, short, kept))
        return {"address": short, "target": target or ""}

    def _change(self, act: Callable[[Gateway, Micros], T]) -> T:
        """Let `act` change the gateway; it is durable when this returns."""
        clock = SystemClock()
        with closing(self._open()) as store:
            gateway = Gateway(
                Identity(), store.open(), random64=lambda: secrets.randbits(64), now=clock.now()
            )
            result = act(gateway, clock.now())
            commit = gateway.commit(clock.now(), flush=True)
            if commit is not None:
                store.apply(commit)
            return result

    def _open(self) -> SqliteStore:
        try:
            return SqliteStore(self._data)
        except StoreError as error:
            if "pid" in error.fields:
                raise Failure(f"a gateway is running on {self._data}: use --url instead") from None
            raise


def _checked(fields: Row, kind: type[T]) -> T:
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        raise Failure(str(error).replace("`", "").replace("$.", ""), exit_code=2) from None


def _info(gateway: Gateway, device: Device, token: str | None = None) -> Row:
    return _plain(device_of(device, gateway.deliveries.session(device), token))


def _plain(answer: object) -> Row:
    """As it would have come over the wire."""
    plain: Row = msgspec.json.decode(msgspec.json.encode(answer))
    return plain
