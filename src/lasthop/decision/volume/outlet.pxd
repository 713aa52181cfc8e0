# Types for the compiled build; see scripts/accelerate.
cimport cython

from lasthop.decision.volume.entry cimport FeedEntry

cdef class Outlet:
    cdef public bint hears_of_holds

    cpdef forward(self, FeedEntry entry, object reason, object instead_of)
    cpdef show(self, list keys, object reason)
    cpdef retract(self, object key, object reason)
    cpdef rerank(self, object key, double rank)
    cpdef hold(self, object key, object reason)
    cpdef drop(self, object key, object reason)

@cython.final
cdef class Noted(Outlet):
    cdef list _effects

    cpdef list take(self)
