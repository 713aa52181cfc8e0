"""Every input of the gateway, the features that it is built from, and the order of a turn.

A `Gateway` owns no socket, task, clock or randomness. A driver (live, rehearsal) calls one of the
inputs, then `settle`; carries out the `effects`; takes the `commit` when there is one, makes it
durable, says `written` and lets it `proceed`. It wakes the gateway at `next_wake`. Nothing that an
outsider could rely on leaves before the commit that it depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from lasthop.clock import Micros
from lasthop.core.air.feature import AirFeature
from lasthop.core.apps.administration import Administration
from lasthop.core.apps.credentials import Credentials
from lasthop.core.contacts.inbound import DeviceMessages
from lasthop.core.contacts.reception import Reception
from lasthop.core.effects import Effect
from lasthop.core.feature import CoreFeature, WaitReason
from lasthop.core.groups.feature import GroupFeature
from lasthop.core.identity import Identity
from lasthop.core.pieces.feature import PieceFeature
from lasthop.core.preferences.feature import PreferenceFeature
from lasthop.core.publishing.acceptance import Idempotency, Receipt, Withdrawal
from lasthop.core.publishing.submission import Submission
from lasthop.core.pushes.feature import PushFeature
from lasthop.core.quota import CallerQuota
from lasthop.core.ranked.feature import RankedFeature
from lasthop.core.restore import restore
from lasthop.core.rights.book import RuleBook
from lasthop.core.services.feature import ServiceFeature
from lasthop.core.spine import Spine
from lasthop.core.surrogates.feature import SurrogateFeature
from lasthop.core.topics.feature import TopicFeature
from lasthop.core.wait_reasons import waiting
from lasthop.events import Kind
from lasthop.message import Message
from lasthop.store.commit import Commit, Restored
from lasthop.wire.hop.frames import CloseCode, Frame

__all__ = ["Gateway", "Idempotency", "Identity", "Receipt", "Submission", "Withdrawal"]

FEATURES: tuple[Callable[[Spine], CoreFeature], ...] = (
    TopicFeature,
    ServiceFeature,
    PreferenceFeature,
    PushFeature,
    GroupFeature,
    RankedFeature,
    PieceFeature,
    SurrogateFeature,
    AirFeature,
)
"""The features of a gateway, in the order in which they take part in every moment. Pieces come
before surrogates, because a surrogate has to see a whole body."""

F = TypeVar("F", bound=CoreFeature)


class Gateway:
    """One gateway, restored from its store: the object that a driver feeds with inputs."""

    def __init__(
        self,
        identity: Identity,
        restored: Restored,
        *,
        random64: Callable[[], int],
        now: Micros,
        features: Sequence[Callable[[Spine], CoreFeature]] = FEATURES,
    ) -> None:
        spine = Spine.build(identity, restored, random64)
        self.deliveries = deliveries = spine.deliveries
        self.registry = deliveries.registry
        self.credentials = Credentials()
        self.credentials.restore(restored.credentials)
        self._commits = deliveries.commits
        self._moments = deliveries.moments
        self._fanouts = spine.fanouts
        self._acceptance = spine.acceptance
        self._dispatcher = spine.dispatcher
        self.contacts = spine.contacts
        self.people = spine.people
        self.users = spine.users
        self.rules = RuleBook(
            deliveries, self.credentials, identity.rules, self.people, least=identity.least
        )
        self.rules.restore(restored.memories)
        self.admin = Administration(
            deliveries, self.contacts, self.credentials, self.rules, self.users
        )
        rate = identity.device_messages
        quota = None if rate is None else CallerQuota(rate)
        self._inbound = DeviceMessages(deliveries, self._acceptance, quota)
        self._reception = Reception(deliveries, self.contacts, self._inbound)
        built = [feature(spine) for feature in features]
        self.features = tuple(feature for feature in built if feature.needed(restored))
        self._by_type = {type(feature): feature for feature in built}
        self._moments.collect(self.features)
        self.topics = self.feature(TopicFeature)
        self.services = self.feature(ServiceFeature)
        self.preferences = self.feature(PreferenceFeature)
        self.pushes = self.feature(PushFeature)
        self.notifications = self.pushes.notifications
        self.groups = self.feature(GroupFeature)
        self.ranked = self.feature(RankedFeature)
        self.pieces = self.feature(PieceFeature)
        self.streams = self.pieces.streams
        self.surrogates = self.feature(SurrogateFeature)
        self.air = self.feature(AirFeature)
        name = f"{restored.incarnation:016x}"
        self._commits.record(Kind.GATEWAY_STARTED, now, incarnation=name, count=restored.boot)
        restore(restored, deliveries, self._acceptance, self._fanouts, now)

    def feature(self, kind: type[F]) -> F:
        """Return one of the gateway's features by its class."""
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
        """Accept a batch of submissions, all or none. The publisher may be answered when commit
        `horizon` is durable."""
        return self._acceptance.publish(app, source, submissions, now, once=once)

    def repeated(self, app: str, source: str, once: Idempotency) -> list[int] | None:
        """Return the keys of the messages that were accepted under a publisher's idempotency key,
        durable or not; None if the key is new."""
        return self._acceptance.repeated(app, source, once)

    def cancel(self, app: str, key: int, now: Micros) -> Withdrawal | None:
        """Cancel the deliveries of a message that have not been released; None if none of its
        deliveries is open."""
        return self._acceptance.cancel(app, key, now)

    def replace(
        self, app: str, key: int, source: str, submission: Submission, now: Micros
    ) -> tuple[Withdrawal | None, str | None]:
        """Put a new message in the place of one that has not been released to every device yet."""
        withdrawal, message = self._acceptance.replace(app, key, source, submission, now)
        return withdrawal, message.id if message is not None else None

    def waiting(self, message: int, device: int, now: Micros) -> WaitReason | None:
        """Return what the delivery of a message to a device waits for now; None if it is not
        open."""
        return waiting(self.deliveries, message, device, now)

    # Channels.

    def channel_opened(self, channel: int, *, reliable: bool = True) -> None:
        """Register a new channel. A driver calls this before the first frame of a channel that may
        lose frames."""
        self.contacts.opened(channel, reliable=reliable)

    def frames_received(
        self, channel: int, frames: Sequence[Frame], now: Micros, *, local: bool = False
    ) -> None:
        """Act on frames that came in over a channel, and close the channel if they break the
        protocol."""
        self._reception.receive(channel, frames, now, local=local)

    def channel_lost(self, channel: int, reason: str, now: Micros) -> None:
        """Forget a channel that has ended, on whichever side it was closed."""
        self.contacts.lost(channel, reason, now)

    def channel_paused(self, channel: int, paused: bool, now: Micros) -> None:
        """Note that a channel's unsent buffer is full, or has room again."""
        self.contacts.paused(channel, paused, now)

    # The driver.

    def settle(self, now: Micros) -> None:
        """Draw the consequences of all inputs since the last call: release, send and answer."""
        moments = self._moments
        self._fanouts.turned()
        for turned in moments.turned:
            turned()
        self._commits.let_go(now)
        for settle in moments.settle:
            settle(now)
        # Settling one session may touch another (a group decides, a claim is lost), so repeat until
        # no session is left.
        while sessions := self.deliveries.touched():
            for session in sessions:
                self._inbound.settle(session)
                for part in session.parts:
                    part.before_sending(now)
                if session.greeted:
                    self._dispatcher.pump(session, now)
                    for part in session.parts:
                        part.after_sending(now)
                    session.sender.settled(session, now)
                else:
                    session.away_sender.pump(session, now)
            self._commits.let_go(now)
            for settle in moments.settle:
                settle(now)
        for after_settling in moments.after_settling:
            after_settling(now)

    def effects(self) -> list[Effect]:
        """Return the effects that the driver has to carry out now, in this order, and forget
        them."""
        effects, self.deliveries.effects = self.deliveries.effects, []
        return effects

    def commit(self, now: Micros, *, flush: bool = False) -> Commit | None:
        """Return the open commit if it is time to write it, or None. Commits are written in the
        order in which they are returned."""
        for before_commit in self._moments.before_commit:
            before_commit()
        return self._commits.take(now, flush=flush)

    def written(self, n: int) -> None:
        """Note that commit `n` is durable. Its consequences are left to `proceed`, so that the
        driver can hand over the next commit first."""
        self._commits.written(n)

    def proceed(self, now: Micros) -> None:
        """Do what has waited for commits that are durable by now."""
        self._commits.let_go(now)
        self._fanouts.proceed(now)
        for proceed in self._moments.proceed:
            proceed(now)
        self.deliveries.evict()

    def fetched(self, messages: dict[int, Message], now: Micros) -> None:
        """Handle the messages that the driver read from the store for a `Fetch` effect."""
        self._dispatcher.fetched(messages, now)
        for fetched in self._moments.fetched:
            fetched(messages, now)

    def recalled(
        self, device: int, messages: dict[int, Message], had: set[int], now: Micros
    ) -> None:
        """Handle the messages that the driver read from the store for a `Recall` effect."""
        for recalled in self._moments.recalled:
            recalled(device, messages, had, now)

    @property
    def horizon(self) -> int:
        """The number of the commit on which every answer and event so far depends."""
        return self._commits.horizon

    @property
    def durable(self) -> int:
        """The number of the newest durable commit."""
        return self._commits.durable

    @property
    def idle(self) -> bool:
        """Whether there is nothing to write and nothing is being written."""
        return self._commits.idle

    def hurry(self) -> None:
        """Let the open commit be taken at once, because a caller waits for its changes."""
        self._commits.hurry()

    def next_wake(self) -> Micros | None:
        """Return the time at which `wake` or `commit` has to be called next if nothing else
        happens; None if never."""
        asked = (self.deliveries.timers.next_due, self._commits.next_due, *self._moments.next_due)
        return min((due for ask in asked if (due := ask()) is not None), default=None)

    def wake(self, now: Micros) -> None:
        """Do everything that is due by `now`: delays, deadlines, retries."""
        for wake in self._moments.wake:
            wake(now)
        for session in self._dispatcher.wake(now):
            reason = "nothing was acknowledged for too long"
            self.contacts.disconnect(session, CloseCode.TIMEOUT, reason, now)
