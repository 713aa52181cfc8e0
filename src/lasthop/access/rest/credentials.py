"""Handlers by which administrators make, list and revoke the credentials of an app."""

from __future__ import annotations

from starlette.responses import Response

from lasthop.access.rest.administration import NewCredential
from lasthop.access.rest.answers import (
    CredentialInfo,
    CredentialList,
    Revoked,
    credential_of,
    json_response,
)
from lasthop.access.rest.exchange import RestExchange
from lasthop.access.rest.times import datetime_of
from lasthop.clock import Micros
from lasthop.core.gateway import Gateway


async def admit(exchange: RestExchange) -> Response:
    """Make a credential. Its token is shown only in this answer."""
    new = await exchange.body(NewCredential)
    app = new.app or exchange.caller.app
    token = exchange.context.make_token()
    scopes = set(new.scopes)
    subject = new.certificate

    def act(gateway: Gateway, now: Micros) -> CredentialInfo:
        if subject is not None:
            gateway.admin.certify(subject, app, new.name, scopes, now)
            made = datetime_of(now)
            return CredentialInfo(app, new.name, sorted(scopes), made, certificate=subject)
        gateway.admin.admit(token, app, new.name, scopes, now)
        return CredentialInfo(app, new.name, sorted(scopes), datetime_of(now), token=token)

    return json_response(await exchange.context.live.call(act), 201)


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
