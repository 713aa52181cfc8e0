"""What a feature is built on: the modules of the core that know no feature, put together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from lasthop.core.apps.behaviour import Behaviours
from lasthop.core.commits import Commits
from lasthop.core.contacts.contact import Contacts, Terms
from lasthop.core.deliveries import Deliveries
from lasthop.core.dispatch import Dispatcher
from lasthop.core.feature import SubscriptionTerms
from lasthop.core.identity import Identity
from lasthop.core.publishing.acceptance import Acceptance
from lasthop.core.publishing.fanout import Fanouts
from lasthop.core.publishing.targets import plain_targets
from lasthop.core.registry import Registry
from lasthop.core.rights.added_users import Users
from lasthop.core.rights.people import People
from lasthop.core.sending import NoAwaySender, PlainSender
from lasthop.message import KeyMaker
from lasthop.store.commit import Restored


@dataclass(slots=True)
class Spine:
    """The parts that every gateway has, whatever its features are."""

    identity: Identity
    deliveries: Deliveries
    acceptance: Acceptance
    fanouts: Fanouts
    dispatcher: Dispatcher
    contacts: Contacts
    people: People
    users: Users
    random64: Callable[[], int]
    terms: SubscriptionTerms | None = None
    """The feature that handles subscriptions with terms, set by that feature."""

    @classmethod
    def build(cls, identity: Identity, restored: Restored, random64: Callable[[], int]) -> Spine:
        """Build the spine of an empty gateway, whose counters continue after those of the store."""
        commits = Commits(
            gateway=identity.name,
            boot=restored.boot,
            next_commit=restored.next_commit,
            next_event=restored.next_event,
            last_key=restored.last_key,
            large=identity.limits.large_commit,
        )
        keys = KeyMaker(node=identity.node, after=restored.last_key, random64=random64)
        deliveries = Deliveries(
            registry=Registry(), commits=commits, keys=keys, limits=identity.limits
        )
        deliveries.unordered = identity.unordered
        deliveries.sender = PlainSender(deliveries)
        deliveries.away_sender = NoAwaySender(deliveries)
        deliveries.behaviours = Behaviours(identity.behaviours)
        deliveries.behaviours.restore(restored.memories)
        fanouts = Fanouts(deliveries)
        deliveries.moments.targets.update(plain_targets(deliveries, fanouts))
        dispatcher = Dispatcher(deliveries)
        terms = Terms(
            restored.incarnation.to_bytes(8),
            identity.open_house,
            identity.accept,
            identity.lanes,
            identity.ways,
        )
        users = Users()
        users.restore(restored.memories)
        users.note = partial(_note, commits)
        people = People(identity.tokens, users)
        contacts = Contacts(deliveries, dispatcher, terms, people)
        acceptance = Acceptance(deliveries, fanouts)
        return cls(
            identity,
            deliveries,
            acceptance,
            fanouts,
            dispatcher,
            contacts,
            people,
            users,
            random64,
        )


def _note(commits: Commits, name: str, state: bytes) -> None:
    """Store at once what is remembered under a name, about no device."""
    commits.open.remember(0, name, state)
    commits.hurry()
