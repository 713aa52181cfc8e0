"""Who is a process of this machine by its own will. `tests/runtime/test_doors.py` asks at all
doors."""

from __future__ import annotations

import pytest

from lasthop.transport.locality import (
    FORWARDED,
    from_foreign_page,
    from_this_machine,
    is_local,
    joined,
    peer_of,
)

HERE = {b"host": b"localhost:8080"}


@pytest.mark.parametrize(
    "headers, peer, local",
    [
        (HERE, "127.0.0.1", True),
        (HERE, "127.8.8.8", True),
        (HERE, "::1", True),
        (HERE, "::ffff:127.0.0.1", True),
        ({b"host": b"[::1]:8080"}, "::1", True),
        ({b"host": b"LOCALHOST"}, "127.0.0.1", True),
        ({b"host": b"127.0.0.1"}, "127.0.0.1", True),
        (HERE | {b"origin": b"http://localhost:8080"}, "127.0.0.1", True),
        (HERE, "192.0.2.1", False),
        (HERE, None, False),
        (HERE, "", False),
        ({}, "127.0.0.1", False),
        ({b"host": b""}, "127.0.0.1", False),
        ({b"host": b"rebound.example:8080"}, "127.0.0.1", False),
        ({b"host": b"localhost.example"}, "127.0.0.1", False),
        ({b"host": b"localhost, rebound.example"}, "127.0.0.1", False),
        ({b"host": b"localhost:8080, rebound.example"}, "127.0.0.1", False),
        ({b"host": b"[nonsense"}, "127.0.0.1", False),
        (HERE | {b"origin": b"https://page.example"}, "127.0.0.1", False),
        (HERE | {b"sec-fetch-site": b"cross-site"}, "127.0.0.1", False),
    ],
)
def test_local_is_a_process_of_this_machine_by_its_own_will(
    headers: dict[bytes, bytes], peer: str | None, local: bool
) -> None:
    assert from_this_machine(headers, peer) is local


@pytest.mark.parametrize("name", sorted(FORWARDED))
def test_a_proxy_speaks_for_others_whatever_it_says(name: bytes) -> None:
    assert not from_this_machine(HERE | {name: b"127.0.0.1"}, "127.0.0.1")


@pytest.mark.parametrize(
    "origin, host, foreign",
    [
        (b"http://localhost:8080", b"localhost:8080", False),
        (b"http://LOCALHOST:8080", b"localhost:8080", False),
        (b"https://gateway.example:8443", b"gateway.example:8443", False),
        (b"http://gateway.example", b"gateway.example:80", False),
        (b"http://gateway.example:80", b"gateway.example", False),
        (b"https://gateway.example", b"gateway.example:443", False),
        (b"https://gateway.example", b"gateway.example", False),
        (b"http://[::1]:8080", b"[::1]:8080", False),
        (b"http://localhost:3000", b"localhost:8080", True),
        (b"http://localhost", b"localhost:8080", True),
        (b"http://localhost:8080", b"localhost", True),
        (b"http://gateway.example", b"gateway.example:443", True),
        (b"http://127.0.0.1:8080", b"localhost:8080", True),
        (b"https://page.example", b"gateway.example", True),
        (b"http://gateway.example.page.example", b"gateway.example", True),
        (b"http://gateway.example@page.example", b"gateway.example", True),
        (b"capacitor://localhost", b"localhost", True),
        (b"file://", b"", True),
        (b"null", b"localhost:8080", True),
        (b"null", b"null", True),
        (b"", b"", True),
        (b"//localhost:8080", b"localhost:8080", True),
        (b"http://localhost:8080", b"", True),
        (b"http://localhost:x", b"localhost:x", True),
        (b"http://[nonsense", b"[nonsense", True),
        (b"http://localhost:8080, http://page.example", b"localhost:8080", True),
    ],
)
def test_a_page_of_ours_is_of_the_host_and_the_port_that_is_asked(
    origin: bytes, host: bytes, foreign: bool
) -> None:
    assert from_foreign_page({b"host": host, b"origin": origin}) is foreign


@pytest.mark.parametrize(
    "site, foreign",
    [
        (b"same-origin", False),
        (b"none", False),
        (b"same-site", True),
        (b"cross-site", True),
        (b"same-origin, same-origin", True),
        (b"", True),
    ],
)
def test_a_browser_is_believed_that_a_page_is_not_ours(site: bytes, foreign: bool) -> None:
    own = HERE | {b"origin": b"http://localhost:8080"}
    assert from_foreign_page(HERE | {b"sec-fetch-site": site}) is foreign
    assert from_foreign_page(own | {b"sec-fetch-site": site}) is foreign


def test_a_header_that_is_repeated_has_all_its_values() -> None:
    given = [
        (b"Host", b"a"),
        (b"HOST", b"b"),
        (b"cookie", b"x=1"),
        (b"Cookie", b"y=2"),
        (b"c", b""),
    ]
    assert joined(given) == {b"host": b"a, b", b"cookie": b"x=1; y=2", b"c": b""}


@pytest.mark.parametrize(
    "peer, local",
    [
        (("127.0.0.1", 1), True),
        (("127.8.9.10", 1), True),
        (("::1%lo", 1, 0, 0), True),
        (("::ffff:127.0.0.1", 1, 0, 0), True),
        (("fe80::1%lo", 1, 0, 0), False),
        (("192.0.2.1", 1), False),
        (("somewhere", 1), False),
        ("/run/socket", True),
        (b"", True),
        (None, True),
        ((), False),
    ],
)
def test_a_socket_says_whether_its_peer_is_here(peer: object, local: bool) -> None:
    assert is_local(peer) is local


def test_a_connection_of_asgi_has_a_peer_or_none() -> None:
    assert peer_of({"client": ("192.0.2.1", 5)}) == "192.0.2.1"
    assert peer_of({"client": None}) is None
    assert peer_of({}) is None
