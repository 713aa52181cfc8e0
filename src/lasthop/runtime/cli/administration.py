"""What can be administered for one app, at whichever counter."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

Row: TypeAlias = dict[str, Any]
"""A device or a credential, in the words of the REST door."""


class AdminGateway(Protocol):
    """Where devices and credentials are administered."""

    def add_credential(
        self, name: str, scopes: list[str], certificate: str | None = None
    ) -> Row: ...

    def credentials(self) -> list[Row]: ...

    def revoke(self, name: str) -> int: ...

    def register(
        self,
        name: str,
        *,
        user: str,
        topics: list[str],
        routes: list[Row] | None = None,
        addresses: list[str] | None = None,
    ) -> Row: ...

    def change(self, name: str, changes: Row) -> Row: ...

    def devices(self) -> list[Row]: ...

    def remove(self, name: str, *, erase: bool) -> None: ...

    def addresses(self) -> list[Row]: ...

    def point(self, address: str, target: str | None) -> Row: ...
