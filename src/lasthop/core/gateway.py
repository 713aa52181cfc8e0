"""The spine: every input of the gateway, and what it makes of it.

A `Gateway` owns no socket, task, clock or randomness. A driver (live, rehearsal) calls one of the
inputs, then `settle`; carries out the `effects`; takes the `commit` when there is one, makes it
durable, says `written` and lets it `proceed`. It wakes the gateway at `next_wake`. Nothing that an
outsider could rely on leaves before the commit that it depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from lasthop.clock import Micros
from lasthop.core.acceptance import Acceptance, Idempotency, Receipt, Withdrawal
from lasthop.core.administration import Administration
from lasthop.core.air.carriage import Carriage
from lasthop.core.behaviour import Behaviour, Behaviours
from lasthop.core.contact import Contacts, Terms
from lasthop.core.credentials import Credentials, Scope
from lasthop.core.dispatch import Dispatcher
from lasthop.core.effects import Effect
from lasthop.core.fanout import Fanouts
from lasthop.core.feature import CoreFeature
from lasthop.core.groups.bonds import Bonds
from lasthop.core.groups.circles import Circle
from lasthop.core.identity import Identity
from lasthop.core.inbound import Inbound
from lasthop.core.journal import Journal
from lasthop.core.mailroom import Mailroom
from lasthop.core.pieces.feature import PieceFeature
from lasthop.core.preferences.feature import PreferenceFeature
from lasthop.core.pushes.pushes import Pushes
from lasthop.core.ranked.feeds import Feeds
from lasthop.core.reception import Reception
from lasthop.core.registry import Device, DeviceRecord, Registry
from lasthop.core.restore import restore
from lasthop.core.sending import PlainSender
from lasthop.core.services.exchanges import Exchanges
from lasthop.core.spine import Spine
from lasthop.core.submission import Submission
from lasthop.core.surrogates.surrogates import Surrogates
from lasthop.core.targets import plain_targets
from lasthop.core.topics.feature import TopicFeature
from lasthop.decision.preferences import Preferences
from lasthop.decision.volume.rules import ContextRule
from lasthop.decision.volume.terms import TopicTerms
from lasthop.delivery.carrier import Outcome
from lasthop.errors import InvalidRequest
from lasthop.events import Kind
from lasthop.message import KeyMaker, Message, Target
from lasthop.store.commit import Commit, Restored
from lasthop.surrogate.mail import Verdict
from lasthop.wire.hop.frames import CloseCode, Frame
from lasthop.wire.xpath.reading import Reading

__all__ = ["Gateway", "Idempotency", "Identity", "Receipt", "Submission", "Withdrawal"]


FEATURES: tuple[Callable[[Spine], CoreFeature], ...] = (
    TopicFeature,
    Exchanges,
    PreferenceFeature,
    Pushes,
    Bonds,
    Feeds,
    PieceFeature,
    Surrogates,
    Carriage,
)
"""In the order in which they take part in every moment. Pieces come before surrogates, which are to
see a whole body."""

F = TypeVar("F", bound=CoreFeature)


class Gateway:
    """One gateway, restored from its store."""

    def __init__(
        self,
        identity: Identity,
        restored: Restored,
        *,
        random64: Callable[[], int],
        now: Micros,
        features: Sequence[Callable[[Spine], CoreFeature]] = FEATURES,
    ) -> None:
        journal = Journal(
            gateway=identity.name,
            boot=restored.boot,
            next_commit=restored.next_commit,
            next_event=restored.next_event,
            last_key=restored.last_key,
            large=identity.limits.large_commit,
        )
        keys = KeyMaker(node=identity.node, after=restored.last_key, random64=random64)
        self.registry = Registry()
        self.credentials = Credentials()
        self.credentials.restore(restored.credentials)
        self.room = room = Mailroom(
            registry=self.registry, journal=journal, keys=keys, limits=identity.limits
        )
        room.sender = PlainSender(room)
        room.behaviours = Behaviours(identity.behaviours)
        room.behaviours.restore(restored.memories)
        self._journal = journal
        self._moments = room.moments
        self._fanouts = Fanouts(room)
        self._acceptance = Acceptance(room, self._fanouts)
        self._dispatcher = Dispatcher(room)
        terms = Terms(restored.incarnation.to_bytes(8), identity.open_house, identity.accept)
        self._contacts = Contacts(room, self._dispatcher, terms)
        self._administration = Administration(room, self._contacts)
        self._inbound = Inbound(room, self._acceptance)
        self._reception = Reception(room, self._contacts, self._inbound)
        spine = Spine(
            identity,
            room,
            self._acceptance,
            self._fanouts,
            self._dispatcher,
            self._contacts,
            random64,
        )
        built = [feature(spine) for feature in features]
        self.features = tuple(feature for feature in built if feature.needed(restored))
        self._by_type = {type(feature): feature for feature in built}
        room.moments.targets.update(plain_targets(room, self._fanouts))
        room.moments.collect(self.features)
        self.topics = self.feature(TopicFeature)
        self.services = self.feature(Exchanges)
        self.preferences = self.feature(PreferenceFeature)
        self.pushes = self.feature(Pushes)
        self.notifications = self.pushes.notifications
        self.bonds = self.feature(Bonds)
        self.feeds = self.feature(Feeds)
        self.pieces = self.feature(PieceFeature)
        self.streams = self.pieces.streams
        self.surrogates = self.feature(Surrogates)
        self.air = self.feature(Carriage)
        journal.tell(
            Kind.GATEWAY_STARTED,
            now,
            incarnation=f"{restored.incarnation:016x}",
            count=restored.boot,
        )
        restore(restored, room, self._acceptance, self._fanouts, now)

    def feature(self, kind: type[F]) -> F:
        """One of the features, by its class."""
        feature = self._by_type[kind]
        assert isinstance(feature, kind)
        return feature

    # Publishers.

    def publish(
        self,
        app: str,
        source: str,
        submissions: Sequence[Submission],
        now: Micros,
        *,
        once: Idempotency | None = None,
    ) -> Receipt:
        """Accept a batch, all or nothing. It may be answered when commit `horizon` is durable."""
        return self._acceptance.publish(app, source, submissions, now, once=once)

    def repeated(self, app: str, source: str, once: Idempotency) -> list[int] | None:
        """The messages that a publisher's idempotency key stands for, durable or not; `None` if it
        is new."""
        return self._acceptance.repeated(app, source, once)

    def cancel(self, app: str, key: int, now: Micros) -> Withdrawal | None:
        """Take a message back where it has not been released; `None` when nothing of it is open."""
        return self._acceptance.cancel(app, key, now)

    def replace(
        self, app: str, key: int, source: str, submission: Submission, now: Micros
    ) -> tuple[Withdrawal | None, str | None]:
        """Put a new message in the place of one that has not been released everywhere yet."""
        withdrawal, message = self._acceptance.replace(app, key, source, submission, now)
        return withdrawal, message.id if message is not None else None

    def change_rank(
        self, app: str, message: Message, rank: float, delivered: Sequence[int], now: Micros
    ) -> int:
        """A message of a topic is worth more, or less. `delivered` are the numbers of the devices
        of which the store says that they have had it. How many deliveries are still open."""
        return self.feeds.change_rank(app, message, rank, delivered, now)

    def watch(self, key: int) -> None:
        """Say `Changed` for this message from now on."""
        self.room.watched[key] += 1

    def unwatch(self, key: int) -> None:
        """One watcher less."""
        self.room.watched[key] -= 1
        if self.room.watched[key] <= 0:
            del self.room.watched[key]

    # Devices as things to administer.

    def register(self, app: str, name: str, record: DeviceRecord, now: Micros) -> Device:
        """Add a device; it may connect as soon as commit `horizon` is durable."""
        return self._administration.register(app, name, record, now)

    def device(self, app: str, name: str) -> Device:
        """The device of this name; there must be one."""
        return self._administration.device(app, name)

    def amend(self, app: str, name: str, now: Micros, **changes: object) -> Device:
        """Change fields of a device's record. Who holds its old token is sent away."""
        return self._administration.amend(app, name, changes, now)

    def subscribe(
        self,
        app: str,
        name: str,
        topic: str,
        now: Micros,
        terms: TopicTerms | None = None,
        *,
        xpath: str | None = None,
    ) -> bool:
        """Subscribe a device to a topic; false when it was, with the same terms and filter."""
        session = self.room.session(self.device(app, name))
        return self.topics.subscriptions.subscribe(session, topic, now, terms, xpath=xpath)

    def unsubscribe(self, app: str, name: str, topic: str, now: Micros) -> bool:
        """End a device's subscription; false when there was none."""
        session = self.room.session(self.device(app, name))
        return self.topics.subscriptions.unsubscribe(session, topic, now)

    def make_circle(self, app: str, target: Target, circle: Circle, now: Micros) -> bool:
        """Let there be a group or queue, or change it; false when it was just so."""
        return self.bonds.make(app, target, circle, now)

    def remove_circle(self, app: str, target: Target, now: Micros) -> int:
        """Let there be none; how many devices belonged to it."""
        return self.bonds.remove(app, target, now)

    def join(self, app: str, name: str, target: Target, now: Micros) -> bool:
        """Put a device into a group, or let it take from a queue; false when it did."""
        session = self.room.session(self.device(app, name))
        return self.bonds.join(session, target, now, by_itself=False)

    def leave(self, app: str, name: str, target: Target, now: Micros) -> bool:
        """And no longer; false when it did not."""
        session = self.room.session(self.device(app, name))
        return self.bonds.leave(session, target, now)

    def set_rules(self, app: str, name: str, rules: list[ContextRule], now: Micros) -> None:
        """Let a device's subscriptions follow its context."""
        session = self.room.session(self.device(app, name))
        self.topics.subscriptions.set_rules(session, rules, now)

    def tell_of_networks(self, others: Callable[[str], Micros | None]) -> None:
        """Let devices know from now on how much silence others found to work on their network."""
        self._contacts.probes.others = others

    def policies_changed(self, now: Micros) -> int:
        """The book of policies has changed; how many feeds follow another one now."""
        return self.feeds.policies_changed(now)

    def prefer(self, app: str, name: str, preferences: Preferences, now: Micros) -> Device:
        """Say for a device which links it likes, when it wants to be left alone, and what it can
        afford."""
        device = self.device(app, name)
        self.preferences.prefer(self.room.session(device), preferences, now)
        return device

    def remove(self, app: str, name: str, now: Micros) -> Device:
        """Forget a device: what is open for it is given up."""
        return self._administration.remove(app, name, now)

    def admit(self, secret: str, app: str, name: str, scopes: set[Scope], now: Micros) -> None:
        """Accept a new credential."""
        row = self.credentials.add(secret, app, name, scopes, now)
        self._journal.commit.credentials[row.hash] = row
        self._journal.hurry()

    def certify(self, subject: str, app: str, name: str, scopes: set[Scope], now: Micros) -> None:
        """Accept a client's certificate as a credential."""
        row = self.credentials.certify(subject, app, name, scopes, now)
        self._journal.commit.credentials[row.hash] = row
        self._journal.hurry()

    def dismiss(self, app: str, name: str) -> int:
        """Accept a credential no longer; how many there were of this name."""
        rows = self.credentials.revoke(app, name)
        self._journal.commit.credentials.update((row.hash, row) for row in rows)
        self._journal.hurry()
        return len(rows)

    def behave(self, app: str, behaviour: Behaviour | None) -> None:
        """Say how messages of an app behave from now on; None takes back what was said."""
        if behaviour is not None and (behaviour.max_size or 0) > self.room.limits.largest_body:
            raise InvalidRequest(
                "max_size is above what this gateway takes; what is larger is a stream",
                limit=self.room.limits.largest_body,
            )
        row = self.room.behaviours.set(app, behaviour)
        self._journal.commit.memories[row.device, row.name] = row
        self._journal.hurry()

    # Channels.

    def channel_opened(self, channel: int, *, reliable: bool = True) -> None:
        """A channel is there. Say so before its first frame if it may lose any."""
        self._contacts.opened(channel, reliable=reliable)

    def frames_received(
        self, channel: int, frames: Sequence[Frame], now: Micros, *, local: bool = False
    ) -> None:
        """Act on what came in over a channel; a peer that breaks the protocol loses it."""
        self._reception.receive(channel, frames, now, local=local)

    def channel_lost(self, channel: int, reason: str, now: Micros) -> None:
        """A channel has ended, whoever ended it."""
        self._contacts.lost(channel, reason, now)

    def channel_paused(self, channel: int, paused: bool, now: Micros) -> None:
        """The channel's unsent buffer is full, or has room again."""
        self._contacts.paused(channel, paused, now)

    def channel_drained(self, channel: int, now: Micros) -> None:
        """The answer to a `Feed`: the piece has left the channel's unsent buffer."""
        found = self._contacts.find(channel)
        if found is not None:
            self.pieces.drained(*found, now)

    # Carriers.

    def carried(self, message: int, device: int, outcome: Outcome, now: Micros) -> None:
        """The answer to a `Carry`: what became of the parcel."""
        self.air.carried(message, device, outcome, now)

    def reachable(self, host: str, now: Micros) -> None:
        """The client at this address has opened a session or a connection."""
        for device in self.air.hosts.at(host):
            self.air.reachable(self.room.session(device), now)

    # Surrogates.

    def consulted(self, app: str, number: int, verdict: Verdict, now: Micros) -> str | None:
        """The answer to a part of a `Consult`. A reason comes back when that cannot be done."""
        return self.surrogates.consulted(app, number, verdict, now)

    def consult_failed(
        self, app: str, number: int, reason: str, now: Micros, *, hopeless: bool = False
    ) -> None:
        """Nothing came of a part of a `Consult`, nor of what was to follow it."""
        self.surrogates.failed(app, number, reason, now, hopeless=hopeless)

    # Filters.

    def filters_matched(self, message: int, reading: Reading, now: Micros) -> None:
        """The answer to a `MatchFilters`: what the app's expressions select of the body."""
        self.topics.matched(message, reading, now)

    # The driver.

    def settle(self, now: Micros) -> None:
        """Draw the consequences of the inputs since the last time."""
        moments = self._moments
        self._fanouts.turned()
        for turned in moments.turned:
            turned()
        self._journal.let_go(now)
        for settle in moments.settle:
            settle(now)
        while sessions := self.room.touched():
            for session in sessions:
                self._inbound.settle(session)
                for part in session.parts:
                    part.before_sending(now)
                if session.greeted:
                    self._dispatcher.pump(session, now)
                    for part in session.parts:
                        part.after_sending(now)
                    session.sender.settled(session, now)
                elif session.away_sender is not None:
                    session.away_sender.pump(session, now)
            self._journal.let_go(now)
            for settle in moments.settle:
                settle(now)
        for after_settling in moments.after_settling:
            after_settling(now)

    def effects(self) -> list[Effect]:
        """What is to be done now, in this order."""
        effects, self.room.effects = self.room.effects, []
        return effects

    def commit(self, now: Micros, *, flush: bool = False) -> Commit | None:
        """What is to be made durable next, after everything before it, if it is time."""
        for before_commit in self._moments.before_commit:
            before_commit()
        return self._journal.take(now, flush=flush)

    def written(self, n: int) -> None:
        """Commit `n` is durable. What it means is drawn by `proceed`, so that the next one can be
        on its way before."""
        self._journal.written(n)

    def proceed(self, now: Micros) -> None:
        """Do what has waited for commits that are durable by now."""
        self._journal.let_go(now)
        self._fanouts.proceed(now)
        for proceed in self._moments.proceed:
            proceed(now)
        self.room.evict()

    def fetched(self, messages: dict[int, Message], now: Micros) -> None:
        """The answer to a `Fetch`."""
        self._dispatcher.fetched(messages, now)
        for fetched in self._moments.fetched:
            fetched(messages, now)

    @property
    def horizon(self) -> int:
        """The commit that everything said so far depends on."""
        return self._journal.horizon

    @property
    def durable(self) -> int:
        """The newest durable commit."""
        return self._journal.durable

    @property
    def idle(self) -> bool:
        """Whether there is nothing to write."""
        return self._journal.idle

    def hurry(self) -> None:
        """Somebody waits for what has been noted so far."""
        self._journal.hurry()

    def next_wake(self) -> Micros | None:
        """When `wake` or `commit` wants to be called next, if nothing else happens."""
        asked = (self.room.timers.next_due, self._journal.next_due, *self._moments.next_due)
        return min((due for ask in asked if (due := ask()) is not None), default=None)

    def wake(self, now: Micros) -> None:
        """Time has passed."""
        for wake in self._moments.wake:
            wake(now)
        for session in self._dispatcher.wake(now):
            reason = "nothing was acknowledged for too long"
            self._contacts.disconnect(session, CloseCode.TIMEOUT, reason, now)
