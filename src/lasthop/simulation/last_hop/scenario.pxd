# Types for the compiled build; see scripts/accelerate.
cimport cython

from lasthop.decision.volume.device_queue cimport DeviceQueue
from lasthop.decision.volume.entry cimport FeedEntry
from lasthop.decision.volume.feed cimport Feed
from lasthop.decision.volume.outlet cimport Outlet

cdef long long ARRIVAL, KIND, KIND_BITS, LINK, LOOK
cdef object NOTHING_NEW

@cython.final
cdef class Hop(Outlet):
    cdef DeviceQueue _device
    cdef public set read

@cython.final
cdef class Scenario:
    cdef Feed _feed
    cdef DeviceQueue _device
    cdef Hop _hop
    cdef object _max

    @cython.locals(feed=Feed, device=DeviceQueue, hop=Hop, ranks=list, expiries=list, key=Py_ssize_t, fall=Py_ssize_t, linked=bint, moment=cython.longlong, now=cython.longlong, kind=cython.longlong)
    cpdef play(self, object trace)
    cdef _wake(self, long long now)
    cdef _look(self, bint linked, long long now)
