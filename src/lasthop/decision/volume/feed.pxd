# Types for the compiled build; see scripts/accelerate.
cimport cython

from lasthop.decision.volume.agenda cimport Agenda
from lasthop.decision.volume.entry cimport FeedEntry
from lasthop.decision.volume.holdings cimport Holdings
from lasthop.decision.volume.outlet cimport Noted, Outlet
from lasthop.decision.volume.quota cimport Quota
from lasthop.decision.volume.ranking cimport Ranking

cdef double inf
cdef long long NEVER
cdef long long UNBOUNDED
cdef str DELAYED, BELOW, DEVICE, ENDED
cdef str AHEAD, ASKED, BELOW_THRESHOLD, CAUGHT_UP, ENOUGH, EXPIRED, INTERRUPTS, LOST
cdef str NO_BETTER, NO_CONTACT, NO_ROOM, OUTRANKED, OVER, SETTLING, UNKNOWN, WITHDRAWN
cdef object NOTHING_NEW

@cython.final
cdef class Feed:
    cdef object _subscription
    cdef object _max
    cdef double _threshold
    cdef double _interrupt
    cdef bint _interrupts
    cdef object _policy
    cdef bint _delays_some
    cdef bint _limits
    cdef bint _chooses
    cdef bint _counts
    cdef bint _sends_all
    cdef bint _learns
    cdef long long _full
    cdef Agenda _agenda
    cdef Holdings _holdings
    cdef Quota _quota
    cdef bint _in_contact
    cdef Py_ssize_t _strangers
    cdef list _delays
    cdef dict _news
    cdef Noted _noted
    cdef public long long due

    cpdef list take(self, object given, long long now)
    cpdef tell(self, object given, long long now, Outlet out)
    @cython.locals(holdings=Holdings, entry=FeedEntry, counts=bint)
    cpdef arrive(self, long long key, double rank, object expires_at, long long now, Outlet out)
    @cython.locals(agenda=Agenda, prefetch=Ranking, news=dict)
    cpdef contact_up(self, object given, long long now, Outlet out)
    cpdef contact_down(self, long long now, Outlet out)
    @cython.locals(agenda=Agenda, delays=list)
    cdef _pass_time(self, long long now, Outlet out)
    @cython.locals(due=cython.longlong, delays=list)
    cdef long long _next_due(self)
    @cython.locals(holdings=Holdings)
    cpdef next_wake(self)
    @cython.locals(delay=cython.longlong, holdings=Holdings)
    cdef _admit(self, FeedEntry entry, long long now, Outlet out)
    cdef _await(self, FeedEntry entry)
    @cython.locals(entry=FeedEntry)
    cdef _rank_changed(self, object key, double rank, long long now, Outlet out)
    cdef _regret(self, object key, Outlet out)
    @cython.locals(entry=FeedEntry)
    cdef _tell(self, object key, object rank, Outlet out)
    cdef _bring_back(self, tuple keys)
    @cython.locals(holdings=Holdings, entry=FeedEntry)
    cdef _read_offline(self, object read)
    @cython.locals(holdings=Holdings, entries=dict, entry=FeedEntry)
    cdef _read(self, object given, long long now, Outlet out)
    cdef _show_one(self, FeedEntry entry, long long now, Outlet out)
    cdef _catch_up(self, long long now, Outlet out)
    @cython.locals(keys=list, unasked=bint, holdings=Holdings, best=FeedEntry, most=cython.longlong)
    cdef Py_ssize_t _deliver(self, object limit, double floor, object reason, Outlet out) except -1
    @cython.locals(holdings=Holdings, prefetch=Ranking, there=cython.longlong, waiting=cython.longlong, room=cython.longlong, entry=FeedEntry, best=FeedEntry, sends_all=bint)
    cdef _send_ahead(self, long long now, Outlet out)
    cdef long long _room(self)
    @cython.locals(holdings=Holdings, evicted=FeedEntry, before=cython.longlong)
    cdef long long _send_one(self, FeedEntry entry, long long now, Outlet out)
    cdef _end(self, FeedEntry entry, bint unasked=*)
    cdef _keep_quota(self, Quota quota, Outlet out)
    cdef _expire(self, long long now, Outlet out)
    cdef _settle(self, long long now, Outlet out)
