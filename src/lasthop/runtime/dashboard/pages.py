"""The paths of the pages, and who may see them.

    /                     links to the other pages
    /device               a device in the browser
    /sdk/                 the JavaScript SDK
    /dashboard            the dashboard; below it:
        static/           its files
        login, logout     for people on other machines
        sign-in           for people who sign in at an issuer (`sign_in.py`)
        live              samples, as server-sent events
        data/             data that only the dashboard shows
        v1/               the REST door, for people who have logged in

A client that the REST door serves without a credential (on this machine, at an open gateway)
need not log in. Everyone else logs in with a token, and gets a cookie for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import parse_qs

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.types import Receive, Scope as Connection, Send

from lasthop.access.callers import Caller, certificate_of
from lasthop.access.rest import Door
from lasthop.access.rest.answers import json_response
from lasthop.access.rest.problems import malformed, problem_of
from lasthop.core.apps.credentials import Scope
from lasthop.errors import (
    Forbidden,
    InvalidRequest,
    LasthopError,
    NotFound,
    TooLarge,
    Unauthorized,
)
from lasthop.policy.store import PolicyStore
from lasthop.runtime.dashboard import learned
from lasthop.runtime.dashboard.files import HEADERS, ServedFiles
from lasthop.runtime.dashboard.live import Live, Sample
from lasthop.runtime.dashboard.sessions import Sessions, by_tls, cookie_in, set_cookie
from lasthop.runtime.dashboard.sign_in import PATHS as SIGN_IN, SignInPages
from lasthop.runtime.dashboard.views import Views
from lasthop.transport.locality import from_foreign_page, joined, peer_of

ROOT = "/dashboard"

MAX_LOGIN = 4096
"""The largest login form, in bytes: a token has 43."""

MARK = b"x-lasthop-dashboard"
"""The header that the pages send with every change. Another site's page cannot send it without a
CORS preflight, which the gateway does not allow."""

_encode = msgspec.json.Encoder().encode


class Query(msgspec.Struct, forbid_unknown_fields=True):
    """The query parameters of the dashboard's data."""

    name: str = ""
    search: str = ""
    after: str = ""


PUBLIC = {"/": "home", "/device": "device", "/favicon.ico": ""}
"""The paths that anybody may see, and the names of the pages there."""

PATHS = frozenset(
    {
        "",
        "login",
        "logout",
        "live",
        "data/about",
        "data/recent",
        "data/devices",
        "data/device",
        "data/topics",
        "data/topic",
        "data/links",
        "data/policies",
        "data/pipeline",
        *SIGN_IN,
    }
)
"""Every path below `ROOT` that is not in one of `FOLDERS`. Nothing is answered at another path, so
that a new path is added here, where the test of who may see what finds it."""

STATIC, REST = FOLDERS = ("static/", "v1/")
"""The folders below `ROOT`: files that anybody may see, and the REST door."""


class Pages:
    """An ASGI application for the pages, which ask the REST door for most of what they show."""

    def __init__(
        self,
        door: Door,
        *,
        live: Live,
        views: Views,
        sessions: Sessions,
        sign_in: SignInPages,
        policy_store: PolicyStore,
        in_force: Callable[[], str],
        lake: Path,
        websocket: str,
    ) -> None:
        """`in_force` returns the policy's version in force, `websocket` is the path at which
        devices connect."""
        self._door = door
        self._live = live
        self._views = views
        self._sessions = sessions
        self._sign_in = sign_in
        self._policy_store = policy_store
        self._in_force = in_force
        self._lake = lake
        self._files = ServedFiles(websocket=websocket)

    def shows(self, method: str, path: str) -> bool:
        """Whether a request is for a page or one of its files, and not for the REST door."""
        if path == ROOT or path.startswith(f"{ROOT}/"):
            return True
        if method not in {"GET", "HEAD"}:
            return False
        return path in PUBLIC or (path.startswith("/sdk/") and self._files.find(path) is not None)

    async def __call__(self, connection: Connection, receive: Receive, send: Send) -> None:
        path = connection["path"]
        if path == ROOT or path.startswith(f"{ROOT}/"):
            await self._dashboard(connection, receive, send)
        else:
            response = self._public(path, joined(connection["headers"]))
            await response(connection, receive, send)

    def _public(self, path: str, headers: dict[bytes, bytes]) -> Response:
        """Return a page or file that contains no secrets."""
        if path == "/favicon.ico":
            return RedirectResponse(f"{ROOT}/static/icon.svg")
        if path in PUBLIC:
            file = self._files.page(PUBLIC[path])
        else:
            found = self._files.find(path)
            assert found is not None, "only what is shown comes here"
            file = found
        return file.response(headers.get(b"if-none-match", b""))

    async def _dashboard(self, connection: Connection, receive: Receive, send: Send) -> None:
        headers = joined(connection["headers"])
        try:
            if connection["path"].startswith(f"{ROOT}/{REST}"):
                await self._pass_on(connection, headers, receive, send)
                return
            response = await self._answer(Request(connection, receive), headers)
        except LasthopError as error:
            self._door.context.refused[error.code] += 1
            response = json_response(problem_of(error), error.http_status)
        await response(connection, receive, send)

    async def _answer(self, request: Request, headers: dict[bytes, bytes]) -> Response:
        path = request.url.path.removeprefix(ROOT).strip("/")
        if path.startswith(STATIC):
            file = self._files.find(request.url.path)
            if file is None:
                raise NotFound("there is no such file")
            return file.response(headers.get(b"if-none-match", b""))
        if path not in PATHS:
            await self._caller(request.scope, headers)  # Strangers need not know what there is.
            raise NotFound("there is nothing at this path")
        if path == "login":
            return await self._login(request, headers)
        if request.method == "POST" and path == "logout":
            _from_here(headers)
            cookie = cookie_in(headers)
            known = self._sessions.find(cookie, self._door.context.live.now())
            self._sessions.end(cookie)
            return _go_with(self._sign_in.left(known), "", request, headers)
        if request.method not in {"GET", "HEAD"}:
            raise NotFound("there is nothing to change at this path")
        if path in SIGN_IN:
            return await self._sign_in.answer(path, request, headers)
        if not path:
            return await self._front_page(request, headers)
        caller = await self._caller(request.scope, headers)
        if path == "live":
            return self._stream()
        return await self._data(path.removeprefix("data/"), caller, request)

    async def _front_page(self, request: Request, headers: dict[bytes, bytes]) -> Response:
        # A link on another site may lead here: the page itself contains nothing, and asks for its
        # data.
        headers = {name: value for name, value in headers.items() if name != b"sec-fetch-site"}
        try:
            await self._caller(request.scope, headers)
        except (Unauthorized, Forbidden):
            return RedirectResponse(f"{ROOT}/login", 303)
        return self._files.page("index").response(headers.get(b"if-none-match", b""))

    # Authentication.

    async def _caller(self, connection: Connection, headers: dict[bytes, bytes]) -> Caller:
        """Return the caller, who must be an administrator: by cookie, by credential, or because
        this machine is trusted."""
        known = self._known(headers)
        if known is not None:
            headers = {**headers, b"authorization": known}
        return await self._identify(connection, headers)

    def _known(self, headers: dict[bytes, bytes]) -> bytes | None:
        """Return the Authorization header for the session cookie, or None. Ignored for pages of
        other origins: a browser sends the cookie for pages of other ports too, which `SameSite`
        treats as the same site."""
        if from_foreign_page(headers):
            return None
        return self._sessions.find(cookie_in(headers), self._door.context.live.now())

    async def _identify(self, connection: Connection, headers: dict[bytes, bytes]) -> Caller:
        callers = self._door.context.callers
        caller = callers.recognise(headers, peer_of(connection), certificate_of(connection))
        caller.require(Scope.ADMIN)
        return caller

    async def _pass_on(
        self, connection: Connection, headers: dict[bytes, bytes], receive: Receive, send: Send
    ) -> None:
        """Pass a request of a person who has logged in to the REST door."""
        if connection["method"] not in {"GET", "HEAD"}:
            if MARK not in headers:
                raise Forbidden("changes below /dashboard are only for the dashboard's own pages")
            _from_here(headers)
        await self._caller(connection, headers)
        known = self._known(headers)
        sent = [(name, value) for name, value in connection["headers"] if name != b"cookie"]
        if known is not None:
            sent = [pair for pair in sent if pair[0] != b"authorization"]
            sent.append((b"authorization", known))
        path = connection["path"].removeprefix(ROOT)
        inner = {**connection, "path": path, "raw_path": path.encode(), "headers": sent}
        await self._door(inner, receive, send)

    async def _login(self, request: Request, headers: dict[bytes, bytes]) -> Response:
        page = self._files.page("login")
        if request.method in {"GET", "HEAD"}:
            return page.response()
        if request.method != "POST":
            raise NotFound("log in with POST")
        _from_here(headers)
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > MAX_LOGIN:
                raise TooLarge("the login form is too large", most=MAX_LOGIN)
        token = parse_qs(body.decode("latin-1")).get("token", [""])[0].strip()
        authorization = b"Bearer " + token.encode("latin-1", "replace")
        try:
            await self._identify(request.scope, {**headers, b"authorization": authorization})
        except (Unauthorized, Forbidden) as error:
            why = "not-an-admin" if isinstance(error, Forbidden) else "unknown"
            return RedirectResponse(f"{ROOT}/login?problem={why}", 303)
        session = self._sessions.begin(authorization, self._door.context.live.now())
        return _go_with(ROOT, session, request, headers)

    # Data.

    def _stream(self) -> Response:
        watching = self._live.watch()
        headers = {**HEADERS, "cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(_events(watching), headers=headers, media_type="text/event-stream")

    async def _data(self, what: str, caller: Caller, request: Request) -> Response:
        try:
            query = msgspec.convert(dict(request.query_params), Query)
        except msgspec.ValidationError as error:
            raise malformed(error) from None
        views, app = self._views, caller.app
        ask: dict[str, Callable[[], object]] = {
            "about": lambda: {"app": app, "apps": views.apps(), "who": caller.name},
            "recent": lambda: [one for one in self._live.recent if one.app == app][::-1],
            "devices": lambda: views.devices(app, after=_number(query.after), search=query.search),
            "device": lambda: views.device(app, query.name),
            "topics": lambda: views.topics(app, after=query.after),
            "topic": lambda: views.topic(app, query.name),
            "links": views.links,
        }
        slow: dict[str, Callable[[], object]] = {
            "policies": lambda: learned.policies(self._policy_store, self._in_force()),
            "pipeline": lambda: learned.summary(self._lake),
        }
        if what in ask:
            return json_response(ask[what]())
        if what in slow:
            return json_response(await asyncio.to_thread(slow[what]))
        raise NotFound("the dashboard has no such data")


def _number(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InvalidRequest("after: expected the number of a device", field="after")
    return int(text)


def _go_with(
    path: str, session: str, request: Request, headers: dict[bytes, bytes]
) -> RedirectResponse:
    """Redirect a browser, with the cookie of its session."""
    cookie = set_cookie(session, secure=by_tls(request.scope["scheme"], headers))
    return RedirectResponse(path, 303, headers={"set-cookie": cookie})


def _from_here(headers: dict[bytes, bytes]) -> None:
    """Raise `Forbidden` for a request that another site's page has sent."""
    if from_foreign_page(headers):
        raise Forbidden("the request came from another site's page")


async def _events(watching: AsyncIterator[list[Sample]]) -> AsyncIterator[bytes]:
    """Yield samples in the form of server-sent events."""
    yield b"retry: 2000\n\n"
    async for samples in watching:
        yield b"data: " + _encode(samples) + b"\n\n"
