"""The keys of issuers come in time, and what goes wrong on the way harms nobody."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest

from lasthop.clock import MINUTE, SECOND
from lasthop.errors import InvalidRequest, Overloaded, Unauthorized
from lasthop.runtime.issuers.fetching import (
    BETWEEN,
    WELL_KNOWN,
    IssuerWeb,
    KeyFetcher,
    check_leads,
)
from lasthop.runtime.issuers.issuer_keys import MAX_BYTES, KeySet, read_keys
from lasthop.runtime.issuers.verifying import TrustedIssuers
from lasthop.runtime.settings.issuers import IssuerSettings
from lasthop.runtime.units import Duration
from lasthop.transport.http import HttpFailure
from tests.runtime.issuers.signing import NOW, ec_key, issuer, jwk, key_set, token


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it did not come true")


Say = Callable[[str], bytes]


def answer(body: bytes, status: str = "200 OK", more: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body


@asynccontextmanager
async def provider(*say: Say) -> AsyncIterator[tuple[str, list[str], list[Say]]]:
    """A server; its URL, the paths that it was asked for, and what answers them: the last one."""
    asked: list[str] = []
    says = [*say]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        path = head.split(b" ")[1].decode()
        asked.append(path)
        writer.write(says[-1](path))
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}", asked, says
    finally:
        listener.close()


class Hands:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.time = NOW

    def now(self) -> int:
        return self.time


def fetching(settings: IssuerSettings) -> tuple[TrustedIssuers, KeyFetcher, Hands]:
    clock = Hands()
    trusted = TrustedIssuers([settings])
    return trusted, KeyFetcher(trusted.issuers[0], clock), clock


def documents(url: str, *keys: bytes) -> Say:
    """Discovery, and the sets of keys one after the other; the last one again and again."""
    left = list(keys)

    def say(path: str) -> bytes:
        if path == WELL_KNOWN:
            return answer(json.dumps({"issuer": url, "jwks_uri": f"{url}/keys"}).encode())
        return answer(left.pop(0) if len(left) > 1 else left[0])

    return say


FIRST, SECOND_SET = (key_set(jwk(ec_key(n), kid=f"k{n}")) for n in (0, 1))


async def test_keys_are_discovered_and_a_new_one_is_taken_when_it_is_met() -> None:
    async with provider() as (url, asked, says):
        says.append(documents(url, FIRST, SECOND_SET))
        trusted, fetcher, clock = fetching(issuer(url=url))
        await fetcher.fetch()
        assert asked == [WELL_KNOWN, "/keys"]
        old = trusted.verify(token(iss=url, header={"kid": "k0"}), clock.time)
        new = token(ec_key(1), iss=url, header={"kid": "k1"})
        with pytest.raises(Unauthorized, match="no key"):
            trusted.verify(new, clock.time)  # They were fetched just now.
        clock.time += BETWEEN
        with pytest.raises(Overloaded, match="being fetched"):
            trusted.verify(new, clock.time)
        following = asyncio.create_task(fetcher.follow())
        await until(lambda: not trusted.stands(old))
        assert len(asked) == 4
        assert trusted.verify(new, clock.time).user == "anna"
        assert not trusted.stands(old)
        following.cancel()


async def test_unknown_keys_make_few_requests() -> None:
    async with provider() as (url, asked, says):
        says.append(documents(url, FIRST))
        trusted, fetcher, clock = fetching(issuer(url=url, keys=f"{url}/keys"))
        following = asyncio.create_task(fetcher.follow())
        await fetcher.tried()
        for number in range(300):
            clock.time += SECOND
            with pytest.raises((Unauthorized, Overloaded)):
                trusted.verify(
                    token(iss=url, header={"kid": f"x{number}"}, now=clock.time), clock.time
                )
            await asyncio.sleep(0.002)
        assert 2 <= len(asked) <= 11
        following.cancel()


async def test_a_provider_that_is_down_is_told_and_its_keys_are_used_on() -> None:
    trusted, fetcher, clock = fetching(issuer(url="http://127.0.0.1:1"))
    await fetcher.fetch()
    with pytest.raises(Overloaded, match="company could not be fetched"):
        trusted.verify(token(iss="http://127.0.0.1:1"), clock.time)
    assert "refused" in trusted.issuers[0].problem
    async with provider() as (url, _, says):
        says.append(documents(url, FIRST))
        trusted, fetcher, clock = fetching(issuer(url=url))
        await fetcher.fetch()
        assert trusted.issuers[0].problem == ""
        says.append(lambda path: answer(b"", "503 Unavailable"))
        await fetcher.fetch()
        assert "answers with the status 503" in trusted.issuers[0].problem
        assert trusted.verify(token(iss=url, header={"kid": "k0"}), clock.time).user == "anna"


@pytest.mark.parametrize(
    "said, why",
    [
        (answer(b"{}"), "missing required field"),
        (answer(b"[" * 1000), "cannot be read"),
        (answer(b"\xff"), "cannot be read"),
        (answer(b'{"issuer":"https://other.example.org","jwks_uri":"x"}'), "another issuer's"),
        (answer(b"", "404 Not Found"), "status 404"),
        (answer(b"", "302 Found", "Location: http://127.0.0.1:1/\r\n"), "status 302"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (MAX_BYTES + 100_000), "too large"),
        (b"SSH-2.0-x\r\n\r\n", "not an HTTP answer"),
        (b"", "ended before"),
    ],
)
async def test_what_no_provider_says_is_refused(said: bytes, why: str) -> None:
    async with provider(lambda path: said) as (url, _, _says):
        trusted, fetcher, _clock = fetching(issuer(url=url))
        await fetcher.fetch()
        assert why in trusted.issuers[0].problem


async def test_keys_may_be_in_a_file(tmp_path: Path) -> None:
    place = tmp_path / "keys.json"
    trusted, fetcher, clock = fetching(issuer(keys=str(place)))
    await fetcher.fetch()
    assert "No such file" in trusted.issuers[0].problem
    place.write_bytes(FIRST)
    await fetcher.fetch()
    assert trusted.verify(token(header={"kid": "k0"}), clock.time).user == "anna"
    place.write_bytes(b" " * (MAX_BYTES + 10))
    await fetcher.fetch()
    assert "too large" in trusted.issuers[0].problem


async def test_a_device_of_the_machine_is_no_file_of_keys() -> None:
    trusted, fetcher, _ = fetching(issuer(keys="/dev/zero"))
    await fetcher.fetch()
    assert "is no file" in trusted.issuers[0].problem


async def test_an_issuer_on_the_internet_leads_nowhere_inside() -> None:
    web = IssuerWeb("")
    assert web.allows(ip_address("10.0.0.1"))  # The issuer of a company inside.
    web._public = True
    assert not web.allows(ip_address("10.0.0.1"))
    assert not web.allows(ip_address("169.254.169.254"))
    assert not web.allows(ip_address("127.0.0.1"))
    assert web.allows(ip_address("93.184.216.34"))
    async with provider(lambda path: answer(FIRST)) as (url, asked, _says):
        with pytest.raises(HttpFailure, match="no address that is allowed"):
            await web.fetch(f"{url}/keys")
        assert asked == []


@pytest.mark.parametrize("url", ["http://login.example.org/keys", "file:///etc/passwd", "ftp://x/"])
def test_documents_lead_to_places_with_tls_only(url: str) -> None:
    with pytest.raises(InvalidRequest, match="without TLS"):
        check_leads("https://login.example.org", url)
    check_leads("https://login.example.org", "https://keys.example.org/keys")


async def test_failures_are_tried_again_soon_and_ever_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []

    async def wait_for(event: object, pause: float) -> None:
        event.close()  # type: ignore[attr-defined]
        pauses.append(pause)
        if len(pauses) == 9:
            raise asyncio.CancelledError
        raise TimeoutError

    monkeypatch.setattr(asyncio, "wait_for", wait_for)
    _, fetcher, _ = fetching(issuer(url="http://127.0.0.1:1", refresh=Duration(10 * MINUTE)))
    with pytest.raises(asyncio.CancelledError):
        await fetcher.follow()
    assert pauses == [5, 10, 20, 40, 80, 160, 320, 600, 600]


async def test_while_an_issuer_is_asked_again_nothing_inside_can_be_reached() -> None:
    """People sign in at the same time, by addresses that the issuer's document has named."""
    web = IssuerWeb("")
    web._public = True
    seen: list[bool] = []

    def say(path: str) -> bytes:
        seen.append(web.allows(ip_address("10.0.0.1")))
        return answer(b"{}")

    async with provider(say) as (url, _asked, _says):
        with pytest.raises(InvalidRequest):
            await web.discover(url)
    assert seen == [False]


async def test_a_long_name_of_an_issuer_is_not_repeated() -> None:
    document = json.dumps({"issuer": "x" * 100_000, "jwks_uri": "y"}).encode()
    async with provider(lambda path: answer(document)) as (url, _asked, _says):
        trusted, fetcher, _ = fetching(issuer(url=url))
        await fetcher.fetch()
        assert len(trusted.issuers[0].problem) < 400


async def test_keys_are_read_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[object] = []

    def read(document: bytes, allowed: tuple[str, ...]) -> KeySet:
        threads.append(threading.current_thread())
        return read_keys(document, allowed)

    monkeypatch.setattr("lasthop.runtime.issuers.fetching.read_keys", read)
    async with provider(lambda path: answer(FIRST)) as (url, _asked, _says):
        trusted, fetcher, _ = fetching(issuer(keys=f"{url}/keys"))
        await fetcher.fetch()
    assert trusted.issuers[0].problem == ""
    assert threads != [threading.main_thread()]
