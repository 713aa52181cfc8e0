"""The paths by which people sign in to the dashboard at an issuer of the settings.

    sign-in            where people can sign in; with `?with=NAME` the way there
    sign-in/done       where the issuer sends them back
    sign-in/out        the way to sign out of the issuer too

No path leads to an address that a request has named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lasthop.access.rest import Door
from lasthop.access.rest.answers import json_response
from lasthop.core.apps.credentials import Scope
from lasthop.errors import Forbidden, LasthopError, Limited
from lasthop.runtime.dashboard.files import HEADERS
from lasthop.runtime.dashboard.sessions import Sessions, cookie_named, set_cookie

if TYPE_CHECKING:
    from lasthop.runtime.issuers.signing_in import SignIn

PATHS = frozenset({"sign-in", "sign-in/done", "sign-in/out"})

COOKIE = "lasthop_sign_in"
LOGIN = "/dashboard/login"

# The browser was sent here by another site, and would not send the session's cookie along with a
# redirect: SameSite=Strict. From a page of ours it does.
_ON = (
    b"<!doctype html><html lang=en><meta charset=utf-8><title>lasthop</title>"
    b'<meta http-equiv="refresh" content="0;url=/dashboard">'
    b'<p><a href="/dashboard">Go on to the dashboard</a></p></html>'
)

log = structlog.get_logger()


class SignInPages:
    """Answers requests of people who sign in, and begins their sessions."""

    def __init__(self, door: Door, sessions: Sessions, sign_in: SignIn | None) -> None:
        self._door = door
        self._sessions = sessions
        self._sign_in = sign_in

    async def answer(self, path: str, request: Request, headers: dict[bytes, bytes]) -> Response:
        """Answer a GET request for one of `PATHS`."""
        offered = self._sign_in.offered if self._sign_in is not None else []
        if self._sign_in is None or (path == "sign-in" and "with" not in request.query_params):
            return json_response({"issuers": offered})
        name = request.query_params.get("with", "")
        if path == "sign-in":
            return self._begin(self._sign_in, name)
        if path == "sign-in/out":
            return RedirectResponse(self._sign_in.leave(name), 303)
        return await self._done(self._sign_in, request, headers)

    def left(self, authorization: bytes | None) -> str:
        """Sign somebody out whose session has ended; return where the browser goes."""
        issuer = self._door.context.callers.let_out(authorization) if authorization else ""
        return f"{LOGIN}?left={quote(issuer, safe='')}" if issuer else LOGIN

    def _begin(self, sign_in: SignIn, name: str) -> Response:
        try:
            url, cookie = sign_in.begin(name, self._door.context.live.now())
        except Limited as error:
            return self._problem(error)
        answer = RedirectResponse(url, 303)
        answer.headers["set-cookie"] = _cookie(cookie, secure=sign_in.secure(name))
        return answer

    async def _done(
        self, sign_in: SignIn, request: Request, headers: dict[bytes, bytes]
    ) -> Response:
        context = self._door.context
        query = dict(request.query_params)
        if len(query) != len(request.query_params.multi_items()):
            query = {}  # Nothing is twice in an answer (RFC 6749, 3.1).
        try:
            cookie = cookie_named(COOKIE, headers)
            token = await sign_in.finish(cookie, query, context.live.now())
            live_token = context.live.look(
                lambda gateway: gateway.people.present(token, context.live.now())
            )
            if Scope.ADMIN not in live_token.scopes:
                raise Forbidden("this user is no administrator", user=token.user)
        except LasthopError as error:
            return self._problem(error)
        log.info("signed_in", issuer=token.issuer, user=token.user)
        authorization = context.callers.let_in(token, context.make_token())
        session = self._sessions.begin(authorization, context.live.now())
        answer = Response(_ON, headers=HEADERS, media_type="text/html")
        secure = sign_in.secure(token.issuer)
        answer.headers.append("set-cookie", set_cookie(session, secure=secure))
        answer.headers.append("set-cookie", _cookie("", secure=secure))
        return answer

    def _problem(self, error: LasthopError) -> Response:
        """Send somebody who could not sign in back to the login page, which says why."""
        self._door.context.refused[error.code] += 1
        log.warning("not_signed_in", reason=str(error))
        why = {"forbidden": "no-admin-role", "overloaded": "issuer-away"}.get(error.code, "refused")
        return RedirectResponse(f"{LOGIN}?problem={why}", 303)


def _cookie(value: str, *, secure: bool) -> str:
    """Return the header with the cookie of an attempt. It comes back when the issuer's page leads
    here, and with nothing else of another site."""
    lasts = 600 if value else 0
    only = "; Secure" if secure else ""
    path = "/dashboard/sign-in"
    return f"{COOKIE}={value}; Path={path}; Max-Age={lasts}; HttpOnly; SameSite=Lax{only}"
