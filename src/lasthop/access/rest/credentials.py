"""Handlers by which administrators make, list and revoke the credentials of an app."""

from __future__ import annotations

from starlette.responses import Response

from lasthop.access.rest.administration import CredentialRotation, NewCredential, time_after
from lasthop.access.rest.answers import (
    CredentialInfo,
    CredentialList,
    Revoked,
    credential_of,
    json_response,
)
from lasthop.access.rest.exchange import RestExchange
from lasthop.access.rest.times import datetime_of
from lasthop.clock import SECOND, Micros
from lasthop.core.apps.credentials import FIRST, Scope
from lasthop.core.gateway import Gateway
from lasthop.errors import InvalidRequest


async def admit(exchange: RestExchange) -> Response:
    """Make a credential. Its token is shown only in this answer."""
    new = await exchange.body(NewCredential)
    app = new.app or exchange.caller.app
    token = exchange.context.make_token()
    scopes = set(new.scopes)
    subject = new.certificate
    first = exchange.caller.name == FIRST
    if first and Scope.ADMIN not in scopes:
        raise InvalidRequest("the first credential is an administrator's: give it the scope admin")

    def act(gateway: Gateway, now: Micros) -> CredentialInfo:
        if first:
            gateway.credentials.take_first(exchange.caller.app)
        until = time_after(new.expires_in, now)
        info = CredentialInfo(
            app,
            new.name,
            sorted(scopes),
            datetime_of(now),
            expires_at=datetime_of(until) if until else None,
        )
        if subject is not None:
            gateway.admin.certify(subject, app, new.name, scopes, now, expires_at=until)
            info.certificate = subject
        else:
            gateway.admin.admit(token, app, new.name, scopes, now, expires_at=until)
            info.token = token
        return info

    return json_response(await exchange.context.live.call(act), 201)


async def rotate(exchange: RestExchange) -> Response:
    """Give a credential a new token, which is shown only in this answer; the earlier one is
    accepted for a while."""
    asked = await exchange.optional_body(CredentialRotation) or CredentialRotation()
    app, name = exchange.caller.app, exchange.path("name")
    token = exchange.context.make_token()

    def act(gateway: Gateway, now: Micros) -> CredentialInfo:
        gateway.admin.rotate(token, app, name, now, overlap=asked.overlap * SECOND)
        info = credential_of(gateway.credentials.named(app, name)[-1])
        info.token = token
        return info

    return json_response(await exchange.context.live.call(act))


async def list_credentials(exchange: RestExchange) -> Response:
    """List the credentials of the app, without their tokens."""
    app = exchange.caller.app
    rows = exchange.context.live.look(lambda gateway: gateway.credentials.of(app))
    return json_response(CredentialList([credential_of(row) for row in rows]))


async def dismiss(exchange: RestExchange) -> Response:
    """Revoke all credentials that have this name."""
    app, name = exchange.caller.app, exchange.path("name")
    count = await exchange.context.live.call(lambda gateway, _: gateway.admin.dismiss(app, name))
    return json_response(Revoked(count))
