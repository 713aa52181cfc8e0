"""The `enc` feature on every kind that has it: encrypted to a gateway that was checked, or not at
all.

About `transport/encryption.py`.
"""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from lasthop.device.client import Device
from lasthop.errors import InvalidRequest
from lasthop.transport.address import parse
from lasthop.transport.dial import dial
from lasthop.transport.encryption import insist
from tests.delivery.board import until
from tests.delivery.conformance.house import APP, housed
from tests.delivery.conformance.kinds import HELLO, KINDS, SECURE, Caller, listening
from tests.transport.certificates import Authority

pytestmark = pytest.mark.anyio

PLAIN = [kind for kind in KINDS if kind not in SECURE]


@pytest.mark.parametrize("kind", SECURE)
async def test_a_gateway_that_nobody_vouches_for_is_not_talked_to(
    kind: str, authority: Authority, tmp_path: Path
) -> None:
    async with listening(kind, tmp_path, authority) as place:
        with pytest.raises(OSError, match=r"CERTIFICATE_VERIFY_FAILED|certificate verify failed"):
            await dial(parse(place.url), HELLO, Caller().ends)
        assert place.board.channels == []


@pytest.mark.parametrize("kind", SECURE)
async def test_a_gateway_with_another_name_is_not_talked_to(
    kind: str, authority: Authority, tmp_path: Path
) -> None:
    async with listening(kind, tmp_path, authority) as place:
        elsewhere = place.url.replace("127.0.0.1", "127.0.0.2")
        other = parse(elsewhere)
        with pytest.raises(OSError, match=r"mismatch|refused|not valid|doesn't match"):
            await dial(other, HELLO, Caller().ends, tls=authority.client())
        assert place.board.channels == []


@pytest.mark.parametrize("kind", SECURE)
async def test_a_gateway_that_speaks_plainly_is_not_answered_plainly(kind: str) -> None:
    """Whoever sits in between cannot talk a device out of encryption: nothing of it is readable."""
    heard = bytearray()

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        heard.extend(await reader.read(2000))
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(OSError, match=r"."):
        await dial(parse(f"{kind}://127.0.0.1:{port}/".rstrip("/")), HELLO, Caller().ends)
    await until(lambda: bool(heard))
    assert heard[0] == 0x16, "a TLS handshake"
    assert b"phone" not in heard
    server.close()


@pytest.mark.parametrize("kind", SECURE)
async def test_a_plain_device_is_not_taken_in_where_tls_is_spoken(
    kind: str, authority: Authority, tmp_path: Path
) -> None:
    plain = {"tcps": "tcp", "wss": "ws", "https": "http", "beeps": "beep"}[kind]
    async with listening(kind, tmp_path, authority) as place:
        caller = Caller()
        try:
            async with asyncio.timeout(5):
                link = await dial(parse(place.url.replace(kind, plain)), HELLO, caller.ends)
                await until(lambda: link.over)
        except OSError:
            pass
        assert place.board.channels == []
        assert caller.diary.opened == []
        caller.ends.alarms.close()


@pytest.mark.parametrize("url", [f"{kind}://gateway:1" for kind in PLAIN if "://" not in kind])
def test_a_device_configured_for_enc_has_no_plain_address(url: str) -> None:
    with pytest.raises(InvalidRequest, match="over encrypted links only"):
        Device(url, app=APP, name="phone", enc=True)


def test_a_context_that_checks_nothing_is_no_enc(authority: Authority) -> None:
    address = parse("tcps://gateway")
    insist(address, None)
    insist(address, authority.client())
    for weak in (ssl.CERT_NONE, ssl.CERT_OPTIONAL):
        context = authority.client()
        context.check_hostname = False
        context.verify_mode = weak
        with pytest.raises(InvalidRequest, match="does not check the gateway's certificate"):
            insist(address, context)
    nameless = authority.client()
    nameless.check_hostname = False
    with pytest.raises(InvalidRequest, match="does not check the gateway's certificate"):
        Device("tcps://gateway", app=APP, name="phone", enc=True, tls=nameless)


async def test_a_device_configured_for_enc_switches_among_encrypted_links_only(
    authority: Authority, tmp_path: Path
) -> None:
    async with housed(authority, tmp_path, "tcps", "https", "tcp") as house:
        tls = authority.client()
        url = house.urls["tcps"]
        async with Device(url, app=APP, name="phone", enc=True, tls=tls) as device:
            await device.contact(timeout=10)
            with pytest.raises(InvalidRequest, match="over encrypted links only"):
                await device.switch(house.urls["tcp"])
            with pytest.raises(InvalidRequest, match="over encrypted links only"):
                await device.join(house.urls["tcp"])
            await device.switch(house.urls["https"])
            await until(lambda: device.channels == 1)
            assert device.connected
