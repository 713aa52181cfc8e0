from __future__ import annotations

import pytest

from lasthop.clock import DAY, MILLISECOND, MINUTE, SECOND
from lasthop.runtime.units import Duration, ListenAddress, Size


@pytest.mark.parametrize(
    "text,micros",
    [
        ("7d", 7 * DAY),
        ("90s", 90 * SECOND),
        ("20ms", 20 * MILLISECOND),
        ("5m", 5 * MINUTE),
        ("0ms", 0),
    ],
)
def test_a_duration_is_written_as_it_is_read(text: str, micros: int) -> None:
    duration = Duration.parse(text)
    assert duration == micros
    assert str(duration) == text


@pytest.mark.parametrize("text", ["256MiB", "64KiB", "100B", "3GiB", "0B"])
def test_a_size_is_written_as_it_is_read(text: str) -> None:
    assert str(Size.parse(text)) == text


@pytest.mark.parametrize("value", ["", "7", "d", "7 weeks", "-1d", "1.5d", 7, None, "1e3s"])
def test_what_is_no_duration_is_refused_with_an_example(value: object) -> None:
    with pytest.raises(ValueError, match="such as"):
        Duration.parse(value)


@pytest.mark.parametrize(
    "text,host,port",
    [
        ("127.0.0.1:8080", "127.0.0.1", 8080),
        ("[::1]:0", "::1", 0),
        ("localhost:65535", "localhost", 65535),
    ],
)
def test_an_address_has_a_host_and_a_port(text: str, host: str, port: int) -> None:
    address = ListenAddress.parse(text)
    assert (address.host, address.port) == (host, port)
    assert str(address) == text


@pytest.mark.parametrize("value", ["", "80", ":80", "host:", "host:65536", "::1:80", "h:x", 80])
def test_what_is_no_address_is_refused_with_an_example(value: object) -> None:
    with pytest.raises(ValueError, match="such as"):
        ListenAddress.parse(value)


@pytest.mark.parametrize(
    "text,loopback",
    [
        ("127.0.0.1:1", True),
        ("127.8.8.8:1", True),
        ("[::1]:1", True),
        ("localhost:1", True),
        ("0.0.0.0:1", False),
        ("[::]:1", False),
        ("192.168.1.2:1", False),
        ("gateway.example:1", False),
    ],
)
def test_loopback_is_what_only_this_machine_can_reach(text: str, loopback: bool) -> None:
    assert ListenAddress.parse(text).loopback is loopback
