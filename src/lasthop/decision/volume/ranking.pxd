# Types for the compiled build; see scripts/accelerate.
cimport cython

from lasthop.decision.volume.entry cimport Ranked

cdef double inf
cdef long long NEVER
cdef Py_ssize_t SHORT, FEW, LOOKS
cdef bint COMPILED
cdef object ORDER, RANK

@cython.locals(low=Py_ssize_t, high=Py_ssize_t, middle=Py_ssize_t, there=double, entry=Ranked)
cpdef Py_ssize_t position(list entries, double number, bint by_rank) except -1

@cython.locals(at=Py_ssize_t, free=Py_ssize_t, entry=Ranked, other=Ranked)
cdef _sort(list entries)

cdef class SortedEvents:
    cdef bint _by_rank
    cdef list _first
    cdef double _floor
    cdef long long _floor_order
    cdef list _heap
    cdef Py_ssize_t _laid
    cdef list _pile

    @cython.locals(entry=Ranked, other=Ranked, there=double, number=double, order=cython.longlong, by_rank=bint, count=Py_ssize_t, at=Py_ssize_t, first=list)
    cdef Py_ssize_t _put(self, list entries, int home) except -1
    @cython.locals(first=list, last=Ranked)
    cdef _put_back(self)
    @cython.locals(by_rank=bint, entry=Ranked, number=double, pile=list, heap=list, rows=list, row=tuple)
    cdef bint _fetch(self) except -1
    cdef list _everything(self)
    cdef _empty(self)

@cython.final
cdef class Ranking(SortedEvents):
    cdef int _home
    cdef public list new
    cdef public Py_ssize_t size

    cpdef push(self, Ranked entry)
    @cython.locals(entry=Ranked, first=list, home=int)
    cpdef Ranked peek(self)
    @cython.locals(entry=Ranked)
    cpdef Ranked take(self)
    @cython.locals(entry=Ranked, taken=list, first=list, home=int, most=cython.longlong)
    cpdef list take_some(self, object limit)
    @cython.locals(taken=list)
    cpdef list take_all(self)
    @cython.locals(entry=Ranked, live=list)
    cpdef sweep(self)
    cdef _settle(self)
    @cython.locals(entry=Ranked, found=list, live=list, home=int)
    cdef list _clear(self)

@cython.final
cdef class Deadlines(SortedEvents):
    cpdef push(self, Ranked entry, dict live)
    @cython.locals(entry=Ranked, first=list)
    cpdef long long due(self)
    @cython.locals(entry=Ranked, first=list)
    cpdef Ranked take(self, long long now)
