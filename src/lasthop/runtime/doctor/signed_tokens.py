"""Checks that the keys of issuers can be fetched, and that what their users may do is no more than
is likely meant."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lasthop.core.apps.credentials import Scope
from lasthop.errors import LasthopError
from lasthop.extras import install_line
from lasthop.runtime.clock import SystemClock
from lasthop.runtime.doctor.finding import Finding, broken, could_be_better, good
from lasthop.runtime.settings.issuers import IssuerSettings

if TYPE_CHECKING:
    from lasthop.runtime.issuers.fetching import KeyFetcher


def issuers(configured: Sequence[IssuerSettings]) -> Iterator[Finding]:
    """Check every issuer of the settings."""
    if not configured:
        return
    try:
        from lasthop.runtime.issuers.fetching import (  # noqa: PLC0415 - in an extra of its own
            KeyFetcher,
            TrustedIssuers,
        )
    except ModuleNotFoundError as error:
        yield broken("issuers", f"{error.name} is missing", install_line(error))
        return
    for issuer in TrustedIssuers(configured).issuers:
        name = f"issuer {issuer.settings.name}"
        clock = SystemClock()
        fetcher = KeyFetcher(issuer, clock)
        asyncio.run(fetcher.fetch())
        if issuer.problem:
            yield broken(name, f"no keys: {issuer.problem}", "check its url, keys and ca")
        else:
            yield good(name, f"has {len(issuer.keys(clock.now()))} keys for this gateway")
        if issuer.settings.client_id and not issuer.problem:
            yield _client(name, fetcher)
        if Scope.ADMIN in issuer.settings.scopes:
            yield could_be_better(
                name, "makes every user an administrator", "use admin_roles in place of scopes"
            )


def _client(name: str, fetcher: KeyFetcher) -> Finding:
    """Check that people can sign in at an issuer."""
    from lasthop.runtime.issuers.signing_in import DONE, read_secret  # noqa: PLC0415

    settings, found = fetcher.issuer.settings, fetcher.discovered
    if settings.client_secret_file:
        try:
            read_secret(settings.client_secret_file)
        except (OSError, LasthopError) as error:
            return broken(name, f"no secret: {error}", "check its client_secret_file")
        if os.stat(settings.client_secret_file).st_mode & 0o007:
            return could_be_better(
                name, f"anybody reads {settings.client_secret_file}", "chmod o= it"
            )
    if found is not None and "S256" not in found.code_challenge_methods_supported:
        return could_be_better(
            name, "does not say that it checks PKCE (S256)", "have that switched on there"
        )
    return good(name, f"people come back to {settings.public_url}{DONE}")
