# Types for the compiled build; see scripts/accelerate.
cimport cython

from lasthop.decision.volume.entry cimport FeedEntry, better, new_entry
from lasthop.decision.volume.quota cimport Quota
from lasthop.decision.volume.ranking cimport Deadlines, Ranking

cdef long long NEVER
cdef Py_ssize_t SWEEP, TOO_LONG
cdef str PREFETCH, HOLDING, BELOW, DEVICE, ENDED
cdef int TO_GO, HELD, THERE

@cython.final
cdef class Holdings:
    cdef public dict entries
    cdef public Py_ssize_t on_device
    cdef public dict over
    cdef public long long newest
    cdef public Ranking prefetch
    cdef public Ranking _held
    cdef public Ranking _unread
    cdef Py_ssize_t _strays
    cdef public Deadlines expiries
    cdef public dict moved
    cdef public Quota retention
    cdef public Quota storage

    cpdef FeedEntry add(self, object key, double rank, long long expires_at, long long now)
    cpdef to_hold(self, FeedEntry entry, str reason, str place=*)
    cpdef to_prefetch(self, FeedEntry entry, str reason)
    cpdef to_device(self, FeedEntry entry, str reason)
    cpdef FeedEntry best(self)
    cpdef FeedEntry held_by_device(self, object key)
    cpdef FeedEntry leaves_for(self, FeedEntry entry)
    cpdef end(self, FeedEntry entry, bint unasked=*)
    cdef _moved_on(self)
    cdef _sweep(self)
    cpdef FeedEntry next_expired(self, long long now)
