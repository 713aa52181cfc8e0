"""Where a gateway listens unless it is told otherwise, for those who have to find it without having
read any settings."""

from __future__ import annotations

from lasthop.runtime.units import ListenAddress

DEFAULT_HTTP = ListenAddress("127.0.0.1:8080")
DEFAULT_TCP = ListenAddress("127.0.0.1:7300")
