"""The settings of issuers: whose signed tokens (JWT) the gateway believes, and what they are
worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from lasthop.clock import DAY, MINUTE, SECOND
from lasthop.core.apps.credentials import Scope
from lasthop.errors import InvalidRequest
from lasthop.runtime.units import Duration

ISSUERS = "issuers"
"""The part of the settings that has a section for every issuer, [[issuers]], and no variable."""

Algorithm: TypeAlias = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]
"""Algorithms whose keys come in pairs. With the others, HS256 and its like, whoever can check a
token can make one."""

LOOPBACK = ("127.0.0.1", "::1", "localhost")

MOST_LEEWAY = 5 * MINUTE
LEAST_REFRESH = 30 * SECOND


class IssuerSettings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An issuer of signed tokens (JWT) that stand for users; one such section for every issuer. It
    needs lasthop[oidc]."""

    name: Annotated[
        str,
        Meta(description="The issuer's name in the log.", pattern="^[A-Za-z0-9._-]{1,64}$"),
    ]
    url: Annotated[
        str,
        Meta(
            description="What its tokens have as `iss`, to the letter. Its keys are looked up below"
            " it (OpenID Connect Discovery), unless `keys` says where they are.",
            pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$",
            examples=["https://login.example.org"],
        ),
    ]
    audience: Annotated[
        str,
        Meta(
            description="What tokens of services must have as `aud`, such as this gateway's URL;"
            " empty: its tokens are no credentials."
        ),
    ] = ""
    client_id: Annotated[
        str,
        Meta(
            description="The id by which the issuer knows this gateway, so that people sign in to"
            " the dashboard there; empty: they do not."
        ),
    ] = ""
    client_secret_file: Annotated[
        str, Meta(description="File with the secret of this client; empty: it has none.")
    ] = ""
    public_url: Annotated[
        str,
        Meta(
            description="This gateway's address in people's browsers. The issuer sends them back"
            " to /dashboard/sign-in/done there, which it has to know.",
            pattern=r"^(https?://[^\s/?#@]+)?$",
            examples=["https://push.example.org"],
        ),
    ] = ""
    asks_for: Annotated[
        tuple[str, ...],
        Meta(description="What the issuer is asked to tell of people who sign in (scopes)."),
    ] = ("openid",)
    algorithms: Annotated[
        tuple[Algorithm, ...], Meta(description="The algorithms that are accepted.", min_length=1)
    ] = ("RS256", "PS256", "ES256", "EdDSA")
    keys: Annotated[
        str,
        Meta(
            description="URL or file of its public keys: a JWK Set, or one key in PEM; empty: as"
            " its discovery document says."
        ),
    ] = ""
    ca: Annotated[
        str,
        Meta(description="PEM file with the authorities of its certificate; empty: the system's."),
    ] = ""
    app: Annotated[
        str,
        Meta(
            description="The app that its users belong to.", pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$"
        ),
    ] = "default"
    user_field: Annotated[
        str, Meta(description="The field of a token with the user's name.", min_length=1)
    ] = "sub"
    prefix: Annotated[
        str,
        Meta(
            description="What the names of its users have before them. No two issuers have the"
            " same.",
            pattern=r"^[^\x00-\x20\x7f/%]{0,64}$",
        ),
    ] = ""
    roles_field: Annotated[
        str, Meta(description="The field of a token with the user's roles; empty: none has any.")
    ] = ""
    scopes: Annotated[
        tuple[Scope, ...],
        Meta(
            description='What every user of the issuer may do; "rules": what rules say about'
            " user:NAME and role:NAME."
        ),
    ] = (Scope.RULES,)
    admin_roles: Annotated[
        tuple[str, ...],
        Meta(description="Roles whose users are administrators, in every app.", examples=["ops"]),
    ] = ()
    added_only: Annotated[
        bool,
        Meta(description="Whether only users are let in that were added (lasthop user add)."),
    ] = False
    leeway: Annotated[
        Duration,
        Meta(description="How far the issuer's clock may differ from this one; at most 5m."),
    ] = Duration(MINUTE)
    longest: Annotated[
        Duration, Meta(description="Tokens that are good for longer than this are refused.")
    ] = Duration(DAY)
    refresh: Annotated[
        Duration,
        Meta(
            description="How often its keys are fetched; also when a token has a key that is not"
            " known, at most every 30s."
        ),
    ] = Duration(10 * MINUTE)


def check_issuers(issuers: Sequence[IssuerSettings]) -> None:
    """Raise `InvalidRequest` for issuers that contradict themselves or one another."""
    for field, about in (("name", "name"), ("url", "url"), ("prefix", "prefix of users")):
        values = [getattr(issuer, field) for issuer in issuers]
        for value in values:
            if values.count(value) > 1:
                raise InvalidRequest(f"issuers: two issuers have the {about} {value!r}")
    for issuer in issuers:
        place = f"issuers.{issuer.name}"
        for name in ("url", "keys"):
            _check_url(f"{place}.{name}", getattr(issuer, name))
        _check_uses(place, issuer)
        if issuer.leeway > MOST_LEEWAY:
            raise InvalidRequest(f"{place}.leeway: must be at most {Duration(MOST_LEEWAY)}")
        if issuer.refresh < LEAST_REFRESH:
            raise InvalidRequest(f"{place}.refresh: must be at least {Duration(LEAST_REFRESH)}")
        if issuer.admin_roles and not issuer.roles_field:
            raise InvalidRequest(f"{place}.admin_roles needs roles_field")


def _check_uses(place: str, issuer: IssuerSettings) -> None:
    """Refuse an issuer that is used for nothing, or whose tokens could be used for two things."""
    if not issuer.audience and not issuer.client_id:
        raise InvalidRequest(f"{place}: set audience, for services, or client_id, for people")
    if issuer.audience == issuer.client_id:
        raise InvalidRequest(
            f"{place}: audience and client_id must differ, or a token that says who has signed in"
            " would be a credential"
        )
    if issuer.client_id and not issuer.public_url:
        raise InvalidRequest(f"{place}.client_id needs public_url")
    if issuer.client_id and "openid" not in issuer.asks_for:
        raise InvalidRequest(f'{place}.asks_for needs "openid"')
    _check_url(f"{place}.public_url", issuer.public_url)


def _check_url(place: str, url: str) -> None:
    """Refuse keys that somebody on the way could exchange."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise InvalidRequest(f"{place}: not a URL") from None
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise InvalidRequest(f"{place}: must be https, unless it is on this machine")
