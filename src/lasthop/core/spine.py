"""What a feature is built on: the parts of the gateway that know no feature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lasthop.core.acceptance import Acceptance
from lasthop.core.contact import Contacts
from lasthop.core.deliveries import Deliveries
from lasthop.core.dispatch import Dispatcher
from lasthop.core.fanout import Fanouts
from lasthop.core.feature import TermsKeeper
from lasthop.core.identity import Identity


@dataclass(slots=True)
class Spine:
    """Everything that every gateway has, whatever its features are."""

    identity: Identity
    deliveries: Deliveries
    acceptance: Acceptance
    fanouts: Fanouts
    dispatcher: Dispatcher
    contacts: Contacts
    random64: Callable[[], int]
    terms: TermsKeeper | None = None
    """Who makes something of the terms of subscriptions."""
