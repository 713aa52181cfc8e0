# Types for the compiled build; see scripts/accelerate.
cimport cython

from lasthop.decision.volume.entry cimport Ranked, new_ranked
from lasthop.decision.volume.ranking cimport Deadlines, Ranking

cdef long long NEVER
cdef Py_ssize_t SWEEP
cdef int HERE

@cython.final
cdef class DeviceQueue:
    cdef object _max
    cdef dict _unread
    cdef public Ranking _ranking
    cdef list _aside
    cdef Deadlines _expiries
    cdef Py_ssize_t _strays
    cdef public Py_ssize_t received
    cdef public list reads

    @cython.locals(event=Ranked, order=cython.longlong)
    cpdef add(self, object key, double rank, long long expires_at)
    @cython.locals(event=Ranked)
    cpdef forget(self, object key)
    cpdef Py_ssize_t count(self, long long now) except -1
    @cython.locals(event=Ranked, keys=list)
    cpdef tuple read_offline(self, object wanted, long long now)
    cpdef contact(self)
    @cython.locals(expired=Ranked)
    cdef _expire(self, long long now)
    @cython.locals(event=Ranked)
    cdef list _take_best(self, object wanted, long long now)
