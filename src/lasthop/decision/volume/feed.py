"""What the gateway holds of one topic for one device, and what it knows the device to hold.

A feed takes inputs and the time, and says what is to be done: figure 7 of the last-hop paper as a
state machine. It decides which events are the best and what a read or a catch-up shows; its policy
decides how much goes to the device before the user asks.

An event counts as on the device from the moment its `Forward` is returned. The hop delivers it
exactly once; if a session is lost for good, the next `ContactUp` names the events that were lost
with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from math import inf, isnan
from typing import Final

from lasthop.clock import Micros
from lasthop.decision.policies.policy import UNBOUNDED, Policy
from lasthop.decision.reasons import (
    AHEAD,
    ASKED,
    BELOW_THRESHOLD,
    CAUGHT_UP,
    ENOUGH,
    EXPIRED,
    INTERRUPTS,
    LOST,
    NO_BETTER,
    NO_CONTACT,
    NO_ROOM,
    OUTRANKED,
    OVER,
    SETTLING,
    UNKNOWN,
    WITHDRAWN,
)
from lasthop.decision.volume.agenda import Agenda
from lasthop.decision.volume.effects import Effect
from lasthop.decision.volume.entry import NEVER, FeedEntry, Place
from lasthop.decision.volume.holdings import Holdings
from lasthop.decision.volume.inputs import (
    NOTHING_NEW,
    Arrived,
    ContactDown,
    ContactUp,
    EventWithdrawn,
    Gone,
    Held,
    Input,
    Lost,
    Muted,
    OfflineRead,
    RankChanged,
    Read,
    StorageChanged,
    Unread,
)
from lasthop.decision.volume.memory import EntryState, FeedState
from lasthop.decision.volume.outlet import Noted, Outlet
from lasthop.decision.volume.quota import Quota
from lasthop.decision.volume.subscription import Subscription

DELAYED: Final = Place.DELAYED.value
BELOW: Final = Place.BELOW.value
DEVICE: Final = Place.DEVICE.value
ENDED: Final = Place.ENDED.value


class Feed:
    """The state of one subscription to a ranked topic: the events, where they are, and what to do
    next."""

    def __init__(self, subscription: Subscription, policy: Policy, *, now: Micros = 0) -> None:
        self._subscription = subscription
        self._max = subscription.max
        self._threshold = subscription.threshold
        self._interrupt = inf if subscription.interrupt is None else subscription.interrupt
        self._interrupts = subscription.interrupt is not None
        self.follow(policy)
        self._agenda = Agenda(subscription, now)
        self._holdings = Holdings(subscription)
        self._quota = self._holdings.retention
        self._in_contact = False
        self._strangers = 0
        """Number of events on the device that the gateway does not know."""
        self._delays: list[tuple[Micros, int, FeedEntry]] = []
        self._news: dict[int, float | None] = {}
        """What the device is to be told at the next contact: an event's new rank, or None for a
        retraction."""
        self._noted = Noted()
        self.due: Micros = self._next_due()
        """The time at which the feed has to act if nothing else happens before."""

    def take(self, given: Input, now: Micros) -> list[Effect]:
        """Handle an input and return the effects to carry out."""
        self.tell(given, now, self._noted)
        return self._noted.take()

    def tell(self, given: Input, now: Micros, out: Outlet) -> None:
        """Handle an input and report the effects to carry out to `out`."""
        # The most frequent inputs come first. With structs, isinstance asks the metaclass and takes
        # longer.
        if type(given) is Arrived:
            self.arrive(given.key, given.rank, given.expires_at, now, out)
            return
        if type(given) is ContactUp:
            self.contact_up(given, now, out)
            return
        if type(given) is ContactDown:
            self.contact_down(now, out)
            return
        if now >= self.due:
            self._pass_time(now, out)
        if type(given) is Read:
            self._read(given, now, out)
        elif type(given) is RankChanged:
            self._rank_changed(given.key, given.rank, now, out)
        elif type(given) is EventWithdrawn:
            self._withdrawn(given, now, out)
        elif type(given) is OfflineRead:
            self._told_of_read(given, now, out)
        elif type(given) is Gone:
            self._gone(given, now, out)
        elif type(given) is Lost:
            self._lost(given, now, out)
        elif type(given) is Unread:
            self._unread(given, now, out)
        elif type(given) is StorageChanged:
            self._storage_changed(given, now, out)
        elif type(given) is Muted:
            self._muted(given, now, out)
        else:
            self._send_ahead(now, out)
        if self._quota is not None:
            self._keep_quota(self._quota, out)

    # The most frequent inputs can also be given directly, without an object for them.

    def arrive(
        self, key: int, rank: float, expires_at: Micros | None, now: Micros, out: Outlet
    ) -> None:
        """Handle a new event of the topic, or a known event with another rank."""
        if now >= self.due:
            self._pass_time(now, out)
        holdings = self._holdings
        if key <= holdings.newest and (key in holdings.entries or key in holdings.over):
            if key in holdings.entries:
                self._rank_changed(key, rank, now, out)
        elif expires_at is not None and expires_at <= now:
            out.drop(key, EXPIRED)
        else:
            counts = rank >= self._threshold
            if not counts and isnan(rank):
                raise ValueError("a rank must be a number")
            entry = holdings.add(key, rank, NEVER if expires_at is None else expires_at, now)
            if entry.expires_at < self.due:  # noqa: PLR1730 for every event: without a call
                self.due = entry.expires_at
            if counts:
                self._admit(entry, now, out)
            else:
                entry.reason = BELOW_THRESHOLD
            if out.hears_of_holds and entry.place not in (DEVICE, ENDED):
                out.hold(key, entry.reason)
        if self._quota is not None:
            self._keep_quota(self._quota, out)

    def contact_up(self, given: ContactUp, now: Micros, out: Outlet) -> None:
        """Note that the device is in contact, and what it reports; send and show what has been
        waiting."""
        if now >= self.due:
            self._pass_time(now, out)
        self._in_contact = True
        if given is not NOTHING_NEW:
            for read in given.reads:
                self._read_offline(read)
            self._bring_back(given.lost)
        if self._news:
            news, self._news = self._news, {}
            for key, rank in news.items():
                self._tell(key, rank, out)
        if self._interrupts:
            shown = self._deliver(self._max, self._interrupt, INTERRUPTS, out)
            self._agenda.shown(shown, now)
        agenda = self._agenda
        if (agenda.open or agenda.due) and agenda.catching_up:
            self._catch_up(now, out)
        prefetch = self._holdings.prefetch
        if prefetch.new or prefetch.size:
            self._send_ahead(now, out)
        if self._quota is not None:
            self._keep_quota(self._quota, out)

    def contact_down(self, now: Micros, out: Outlet) -> None:
        """Note that the device is out of contact."""
        if now >= self.due:
            self._pass_time(now, out)
        self._in_contact = False
        if self._quota is not None:
            self._keep_quota(self._quota, out)

    def _pass_time(self, now: Micros, out: Outlet) -> None:
        """Do what has become due since the last input."""
        delays, agenda = self._delays, self._agenda
        if self._holdings.expiries.due() <= now:
            self._expire(now, out)
        if delays and delays[0][0] <= now:
            self._settle(now, out)
        if agenda.next_change is not None and agenda.turn(now) and self._in_contact:
            self._catch_up(now, out)
        self.due = self._next_due()

    def _next_due(self) -> Micros:
        due, delays, change = (
            self._holdings.expiries.due(),
            self._delays,
            self._agenda.next_change,
        )
        if delays and delays[0][0] < due:
            due = delays[0][0]
        return due if change is None or due < change else change

    def next_wake(self) -> Micros | None:
        """Return when to wake the feed if nothing else happens before; None: never."""
        if self.due == NEVER:
            return None
        holdings = self._holdings
        wake = self._agenda.next_change
        if self._delays and (wake is None or self._delays[0][0] < wake):
            wake = self._delays[0][0]
        waiting = holdings.prefetch.new or holdings.prefetch.size
        if waiting and self._in_contact and holdings.on_device:
            expires_at = holdings.expiries.due()
            if expires_at < (NEVER if wake is None else wake):
                wake = expires_at
        return wake

    def why(self, key: int) -> str:
        """Return the reason why an event is where it is."""
        entry = self._holdings.entries.get(key)
        if entry is not None:
            return entry.reason
        return OVER if key in self._holdings.over else UNKNOWN

    # For a feed that is kept in a store.

    def track(self) -> None:
        """Begin to note which events change, for `moved`."""
        self._holdings.moved = {}

    def moved(self) -> set[int]:
        """Return the keys of the events that have changed since the last call."""
        moved, self._holdings.moved = self._holdings.moved or {}, {}
        return set(moved)

    def entry(self, key: int) -> EntryState | None:
        """Return the state of an event as plain values; None if it is over."""
        e = self._holdings.entries.get(key)
        if e is None:
            return None
        expires_at = None if e.expires_at == NEVER else e.expires_at
        return EntryState(e.key, e.rank, expires_at, e.arrived_at, Place(e.place), e.due)

    def state(self) -> FeedState:
        """Return the state of the feed as plain values, without its events."""
        storage = self._holdings.storage
        return FeedState(
            self._agenda.state(),
            self._strangers,
            tuple(self._news.items()),
            storage.limit if storage is not None else None,
        )

    def resume(self, state: FeedState, entries: Iterable[EntryState]) -> None:
        """Continue from a stored state after a restart, out of contact."""
        self._agenda.resume(state.agenda)
        self._strangers = state.strangers
        self._news = dict(state.news)
        for entry_state in entries:
            entry = self._holdings.readmit(entry_state)
            if entry.place == DEVICE and entry.rank < self._threshold:
                # The device is yet to be told that the event fell below Threshold.
                self._holdings.rerank(entry, entry.rank, counts=False)
            elif entry.place == DELAYED:
                self._await(entry)
        if state.storage is not None:
            self._holdings.resize_storage(state.storage, self._subscription)
        self.due = self._next_due()

    @property
    def in_contact(self) -> bool:
        """Whether the device is in contact now."""
        return self._in_contact

    @property
    def unread_there(self) -> int:
        """How many unread events the device holds, as far as the gateway knows."""
        return self._holdings.on_device

    def on_device(self) -> list[int]:
        """Return the keys of the unread events on the device, as far as the gateway knows."""
        return [key for key, entry in self._holdings.entries.items() if entry.place == DEVICE]

    def place(self, key: int) -> Place:
        """Return where an event is; `ENDED` for an event that is over or was never here."""
        entry = self._holdings.entries.get(key)
        return Place.ENDED if entry is None else Place(entry.place)

    def ranks(self) -> list[tuple[float, Place]]:
        """Return rank and place of every event that is not over."""
        return [(entry.rank, Place(entry.place)) for entry in self._holdings.entries.values()]

    def entries(self) -> list[int]:
        """Return the keys of all events that are not over."""
        return list(self._holdings.entries)

    def follow(self, policy: Policy) -> None:
        """Let another policy decide how much is forwarded from now on."""
        self._policy = policy
        # Methods that the policy does not override need not be called for every event.
        kind = type(policy)
        self._delays_some = kind.arrived is not Policy.arrived
        self._limits = kind.room is not Policy.room
        self._chooses = kind.worth is not Policy.worth
        self._counts = kind.forwarded is not Policy.forwarded
        self._sends_all = not self._chooses and not self._counts
        self._learns = (
            self._delays_some
            or self._counts
            or kind.read is not Policy.read
            or kind.rank_fell is not Policy.rank_fell
        )
        self._full = -1
        """The number of events on the device at which a policy that learns nothing had no room;
        with the same number it has none again. -1: none such is known."""

    def _admit(self, entry: FeedEntry, now: Micros, out: Outlet) -> None:
        """Let an event in that is at or above Threshold: show it, send it ahead, or keep it for
        later."""
        delay = 0
        if self._delays_some:
            lifetime = None if entry.expires_at == NEVER else entry.expires_at - now
            delay = self._policy.arrived(lifetime=lifetime, now=now)
        holdings, policy = self._holdings, self._policy
        if self._agenda.open or entry.rank >= self._interrupt:
            if self._in_contact:
                self._show_one(entry, now, out)
            else:
                holdings.to_hold(entry, NO_CONTACT)
        elif delay > 0:
            holdings.to_hold(entry, SETTLING, DELAYED)
            entry.due = now + delay
            self._await(entry)
        elif not self._in_contact:
            holdings.to_prefetch(entry, NO_CONTACT)
        elif holdings.prefetch.new or holdings.prefetch.size:
            holdings.to_prefetch(entry, ENOUGH)
            self._send_ahead(now, out)
        elif self._limits and policy.room(on_device=holdings.on_device + self._strangers) <= 0:
            holdings.to_prefetch(entry, ENOUGH)
        elif self._sends_all and holdings.storage is None:  # No other event waits.
            holdings.to_device(entry, AHEAD)
            out.forward(entry, AHEAD, None)
        else:
            self._send_one(entry, now, out)

    def _await(self, entry: FeedEntry) -> None:
        """Hold an event back until its delay is over."""
        heappush(self._delays, (entry.due, entry.order, entry))
        self.due = min(self.due, entry.due)

    def _rank_changed(self, key: int, rank: float, now: Micros, out: Outlet) -> None:
        if isnan(rank):
            raise ValueError("a rank must be a number")
        entry = self._holdings.entries.get(key)
        counts = rank >= self._threshold
        if entry is None:
            if not counts:
                self._regret(key, out)
            return
        counted = entry.rank >= self._threshold
        entry = self._holdings.rerank(entry, rank, counts=counts)
        if counts and entry.place == DELAYED:
            self._await(entry)
        if counted and not counts:
            self._policy.rank_fell(age=now - entry.arrived_at)
        if counts and self._in_contact and rank >= self._interrupt:
            self._show_one(entry, now, out)
        elif entry.place == DEVICE:
            self._tell(key, rank if counts else None, out)
        elif not counts:
            entry.place = BELOW
            entry.reason = BELOW_THRESHOLD
        elif entry.place == BELOW:
            self._admit(entry, now, out)
        self._send_ahead(now, out)

    def _regret(self, key: int, out: Outlet) -> None:
        """Retract an event that was shown unasked and is now withdrawn or ranked below
        Threshold."""
        if self._holdings.over.get(key):
            self._holdings.over[key] = False
            self._tell(key, None, out)

    def _tell(self, key: int, rank: float | None, out: Outlet) -> None:
        """Tell the device an event's new rank, or with None to forget it; at the next contact if
        there is none."""
        if not self._in_contact:
            self._news[key] = rank
            return
        entry = self._holdings.held_by_device(key)
        if rank is None:
            out.retract(key, BELOW_THRESHOLD if entry is not None else WITHDRAWN)
            if entry is not None:
                self._holdings.to_gateway(entry, counts=False, reason=BELOW_THRESHOLD)
        elif entry is not None:
            out.rerank(key, rank)

    def _withdrawn(self, given: EventWithdrawn, now: Micros, out: Outlet) -> None:
        entry = self._holdings.entries.get(given.key)
        if entry is None:
            self._regret(given.key, out)
            return
        on_device = entry.place == DEVICE
        self._end(entry)
        if on_device:
            self._tell(given.key, None, out)
        else:
            out.drop(given.key, WITHDRAWN)
        self._send_ahead(now, out)

    def _lost(self, given: Lost, now: Micros, out: Outlet) -> None:
        self._bring_back(given.keys)
        self._send_ahead(now, out)

    def _bring_back(self, keys: tuple[int, ...]) -> None:
        for key in keys:
            entry = self._holdings.held_by_device(key)
            if entry is not None:
                counts = entry.rank >= self._threshold
                self._news.pop(key, None)
                self._holdings.to_gateway(entry, counts=counts, reason=LOST)
                if counts:
                    self._holdings.to_prefetch(entry, LOST)

    def _told_of_read(self, given: OfflineRead, now: Micros, out: Outlet) -> None:
        self._read_offline(given)
        self._send_ahead(now, out)

    def _read_offline(self, read: OfflineRead) -> None:
        holdings = self._holdings
        for key in read.keys:
            entry = holdings.entries.get(key)
            if entry is not None:
                if self._news:
                    self._news.pop(key, None)
                holdings.end(entry)
        if self._learns:
            wanted = len(read.keys) if read.wanted is None else read.wanted
            self._policy.read(wanted=wanted, offline=True, at=read.at)

    def _read(self, given: Read, now: Micros, out: Outlet) -> None:
        holdings = self._holdings
        entries = holdings.entries
        for held in given.client_events:
            entry = entries.get(held.key)
            if entry is None or entry.place != DEVICE:
                self._meet(held, now, out)
        self._strangers = max(0, given.queue_size - holdings.on_device)
        wanted = given.wanted
        if wanted is None or (self._max is not None and self._max < wanted):
            wanted = self._max
        shown = self._deliver(wanted, -inf, ASKED, out)
        if self._learns:
            self._policy.read(wanted=shown if wanted is None else wanted, offline=False, at=now)
        self._send_ahead(now, out)

    def _meet(self, held: Held, now: Micros, out: Outlet) -> None:
        """Settle an event that the device reports but is not known to hold."""
        entry = self._holdings.entries.get(held.key)
        if held.key in self._holdings.over:
            out.retract(held.key, OVER)
        elif entry is not None and entry.place == BELOW:
            out.retract(held.key, BELOW_THRESHOLD)
        elif entry is not None:
            self._holdings.to_device(entry, AHEAD)
        elif held.rank >= self._threshold and (held.expires_at is None or held.expires_at > now):
            self._keep_there(held, now)

    def _keep_there(self, held: Held, now: Micros) -> None:
        """Note that the device holds the event, unread."""
        expires_at = NEVER if held.expires_at is None else held.expires_at
        entry = self._holdings.add(held.key, held.rank, expires_at, now)
        self.due = min(self.due, expires_at)
        self._holdings.to_device(entry, AHEAD)

    def _muted(self, given: Muted, now: Micros, out: Outlet) -> None:
        self._agenda.mute(given.quiet)
        if self._in_contact and self._agenda.catching_up:
            self._catch_up(now, out)

    def _gone(self, given: Gone, now: Micros, out: Outlet) -> None:
        for key in given.keys:
            entry = self._holdings.entries.get(key)
            if entry is not None:
                self._end(entry)
        self._send_ahead(now, out)

    def _unread(self, given: Unread, now: Micros, out: Outlet) -> None:
        for held in given.events:
            if held.key in self._holdings.entries:
                continue
            self._holdings.revive(held.key)
            if held.expires_at is not None and held.expires_at <= now:
                continue
            counts = held.rank >= self._threshold
            self._keep_there(held, now)
            # The rank may have changed while the gateway took the event for read.
            self._tell(held.key, held.rank if counts else None, out)
        self._make_room(out)

    def _storage_changed(self, given: StorageChanged, now: Micros, out: Outlet) -> None:
        self._holdings.resize_storage(given.limit, self._subscription)
        self._make_room(out)
        self._send_ahead(now, out)

    def _make_room(self, out: Outlet) -> None:
        """Take back from the device the events that do not fit there."""
        holdings = self._holdings
        while holdings.storage is not None and (worst := holdings.storage.victim()) is not None:
            self._news.pop(worst.key, None)
            counts = worst.rank >= self._threshold
            out.retract(worst.key, NO_ROOM)
            holdings.to_gateway(worst, counts=counts, reason=NO_ROOM)

    def _show_one(self, entry: FeedEntry, now: Micros, out: Outlet) -> None:
        reason = INTERRUPTS if entry.rank >= self._interrupt else CAUGHT_UP
        if entry.place != DEVICE:
            out.forward(entry, reason, None)
        out.show([entry.key], reason)
        self._end(entry, True)
        self._agenda.shown(1, now)

    def _catch_up(self, now: Micros, out: Outlet) -> None:
        shown = self._deliver(self._agenda.allowance(now), -inf, CAUGHT_UP, out)
        self._agenda.due = False
        self._agenda.shown(shown, now)

    def _deliver(self, limit: int | None, floor: float, reason: str, out: Outlet) -> int:
        """Show the best of what gateway and device hold, and send what the device lacks; return how
        many."""
        keys: list[int] = []
        unasked = reason is not ASKED
        holdings = self._holdings
        most = UNBOUNDED if limit is None else limit
        while len(keys) < most:
            best = holdings.best()
            if best is None or best.rank < floor:
                break
            if best.place != DEVICE:
                out.forward(best, reason, None)
            keys.append(best.key)
            if self._news:
                self._news.pop(best.key, None)
            holdings.end(best, unasked)
        if keys:
            out.show(keys, reason)
        return len(keys)

    def _send_ahead(self, now: Micros, out: Outlet) -> None:
        """Prefetch the best events, as many as the policy has room for."""
        holdings = self._holdings
        prefetch = holdings.prefetch
        waiting = len(prefetch.new) + prefetch.size
        if not waiting or not self._in_contact:
            return
        room = UNBOUNDED
        if self._limits:
            there = holdings.on_device + self._strangers
            if there == self._full:
                return
            room = self._policy.room(on_device=there)
            if room <= 0 and not self._learns:
                self._full = there
        if room >= waiting:
            sends_all = self._sends_all and holdings.storage is None
            for entry in prefetch.take_all():
                if sends_all:
                    holdings.to_device(entry, AHEAD)
                    out.forward(entry, AHEAD, None)
                else:
                    self._send_one(entry, now, out)
            return
        while room > 0:
            best = prefetch.take()
            if best is None:
                return
            room -= self._send_one(best, now, out)

    def _room(self) -> int:
        return self._policy.room(on_device=self._holdings.on_device + self._strangers)

    def _send_one(self, entry: FeedEntry, now: Micros, out: Outlet) -> int:
        """Prefetch the event if it is worth it; return how much of the policy's room it takes."""
        holdings, policy = self._holdings, self._policy
        if self._chooses:
            lifetime = None if entry.expires_at == NEVER else entry.expires_at - now
            if not policy.worth(lifetime=lifetime, now=now):
                holdings.to_hold(entry, policy.unworthy)
                return 0
        evicted = None if holdings.storage is None else holdings.leaves_for(entry)
        if evicted is entry:
            holdings.to_hold(entry, NO_BETTER)
            return 0
        before = 0 if evicted is None else self._room()
        if self._counts:
            policy.forwarded()
        holdings.to_device(entry, AHEAD)
        if evicted is None:
            out.forward(entry, AHEAD, None)
            return 1
        out.forward(entry, AHEAD, evicted.key)
        holdings.to_gateway(evicted, counts=True, reason=NO_ROOM)
        return before - self._room()

    def _end(self, entry: FeedEntry, unasked: bool = False) -> None:
        if self._news:
            self._news.pop(entry.key, None)
        self._holdings.end(entry, unasked)

    def _keep_quota(self, quota: Quota, out: Outlet) -> None:
        while (victim := quota.victim()) is not None:
            out.drop(victim.key, OUTRANKED)
            self._end(victim)

    def _expire(self, now: Micros, out: Outlet) -> None:
        while (entry := self._holdings.next_expired(now)) is not None:
            if entry.place != DEVICE:
                out.drop(entry.key, EXPIRED)
            self._end(entry)

    def _settle(self, now: Micros, out: Outlet) -> None:
        """Release events whose delay is over, unless they have moved elsewhere meanwhile."""
        while self._delays and self._delays[0][0] <= now:
            entry = heappop(self._delays)[2]
            if entry.place == DELAYED:
                self._holdings.to_prefetch(entry, ENOUGH if self._in_contact else NO_CONTACT)
        self._send_ahead(now, out)
