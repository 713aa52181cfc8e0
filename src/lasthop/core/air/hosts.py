"""An index of the devices that are reached over the air, by host."""

from __future__ import annotations

from lasthop.core.registry import Device, DeviceRecord, Index


class HostIndex(Index):
    """Finds the devices that have a route to a host."""

    def __init__(self) -> None:
        self._by_host: dict[str, dict[int, Device]] = {}

    def added(self, device: Device) -> None:
        for route in device.record.routes:
            self._by_host.setdefault(route.endpoint()[0], {})[device.number] = device

    def amended(self, device: Device, before: DeviceRecord) -> None:
        self._forget(device, before)
        self.added(device)

    def removed(self, device: Device) -> None:
        self._forget(device, device.record)

    def at(self, host: str) -> list[Device]:
        """Return the devices that have a route to this host."""
        return list(self._by_host.get(host, {}).values())

    def _forget(self, device: Device, record: DeviceRecord) -> None:
        for host in {route.endpoint()[0] for route in record.routes}:
            del self._by_host[host][device.number]
            if not self._by_host[host]:
                del self._by_host[host]
