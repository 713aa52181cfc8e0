"""The addresses on which a gateway listens by default, for programs that must find the gateway
without reading its settings."""

from __future__ import annotations

from lasthop.runtime.units import ListenAddress

DEFAULT_HTTP = ListenAddress("127.0.0.1:8080")
DEFAULT_TCP = ListenAddress("127.0.0.1:7300")
