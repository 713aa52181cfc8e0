# Types for the compiled build; see scripts/accelerate.
cimport cython

from lasthop.decision.volume.entry cimport FeedEntry

@cython.final
cdef class Quota:
    cdef public Py_ssize_t limit
    cdef object _enough
    cdef double _threshold
    cdef long long _serial
    cdef dict _members
    cdef list _worst
    cdef list _expiries

    cpdef add(self, FeedEntry entry)
    cpdef discard(self, FeedEntry entry)
    cpdef FeedEntry victim(self)
    cdef bint _outranked(self, object row, list no_better) except -1
