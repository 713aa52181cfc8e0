"""Checks that the keys of issuers can be fetched, and that what their users may do is no more than
is likely meant."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from lasthop.core.apps.credentials import Scope
from lasthop.extras import install_line
from lasthop.runtime.clock import SystemClock
from lasthop.runtime.doctor.finding import Finding, broken, could_be_better, good
from lasthop.runtime.settings.issuers import IssuerSettings


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
        asyncio.run(KeyFetcher(issuer, clock).fetch())
        if issuer.problem:
            yield broken(name, f"no keys: {issuer.problem}", "check its url, keys and ca")
        else:
            yield good(name, f"has {len(issuer.keys(clock.now()))} keys for this gateway")
        if Scope.ADMIN in issuer.settings.scopes:
            yield could_be_better(
                name, "makes every user an administrator", "use admin_roles in place of scopes"
            )
