"""Administration by asking a running gateway."""

from __future__ import annotations

from lasthop.runtime.cli.administration import Row
from lasthop.runtime.cli.client import RestClient, segment


class AtGateway:
    """A running gateway's REST door."""

    def __init__(self, client: RestClient) -> None:
        self._client = client

    def add_credential(self, name: str, scopes: list[str], certificate: str | None = None) -> Row:
        body: Row = {"name": name, "scopes": scopes, "certificate": certificate}
        made: Row = self._client.call("POST", "/v1/credentials", body=body)
        return made

    def credentials(self) -> list[Row]:
        found: list[Row] = self._client.call("GET", "/v1/credentials")["credentials"]
        return found

    def revoke(self, name: str) -> int:
        return int(self._client.call("DELETE", f"/v1/credentials/{segment(name)}")["revoked"])

    def register(
        self,
        name: str,
        *,
        user: str,
        topics: list[str],
        routes: list[Row] | None = None,
        addresses: list[str] | None = None,
    ) -> Row:
        body = {"name": name, "user": user, "subscriptions": topics, "routes": routes or []}
        body["addresses"] = addresses or []
        made: Row = self._client.call("POST", "/v1/devices", body=body)
        return made

    def change(self, name: str, changes: Row) -> Row:
        changed: Row = self._client.call("PATCH", f"/v1/devices/{segment(name)}", body=changes)
        return changed

    def devices(self) -> list[Row]:
        found: list[Row] = []
        after: int | None = 0
        while after is not None:
            page = self._client.call("GET", "/v1/devices", query={"after": after, "limit": 1000})
            found += page["devices"]
            after = page.get("next")
        return found

    def remove(self, name: str, *, erase: bool) -> None:
        query: dict[str, object] = {"erase": "true"} if erase else {}
        self._client.call("DELETE", f"/v1/devices/{segment(name)}", query=query)

    def addresses(self) -> list[Row]:
        found: list[Row] = self._client.call("GET", "/v1/addresses")["addresses"]
        return found

    def point(self, address: str, target: str | None) -> Row:
        path = f"/v1/addresses/{segment(address)}"
        if target is None:
            removed: Row = self._client.call("DELETE", path)
            return removed
        changed: Row = self._client.call("PUT", path, body={"target": target})
        return changed
