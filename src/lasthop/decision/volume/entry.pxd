# Types for the compiled build; see scripts/accelerate.
cimport cython

cdef class Ranked:
    cdef public cython.py_int key
    cdef public double rank
    cdef public long long expires_at
    cdef public long long order
    cdef public int home

@cython.final
cdef class FeedEntry(Ranked):
    cdef public long long arrived_at
    cdef public long long due
    cdef public str place
    cdef public str reason

cdef str BELOW

@cython.locals(event=Ranked)
cpdef Ranked new_ranked(object key, double rank, long long expires_at, long long order)
@cython.locals(entry=FeedEntry)
cpdef FeedEntry new_entry(object key, double rank, long long expires_at, long long arrived_at)
cpdef FeedEntry better(FeedEntry one, FeedEntry other)
