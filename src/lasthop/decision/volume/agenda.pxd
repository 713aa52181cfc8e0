# Types for the compiled build; see scripts/accelerate.
cimport cython

@cython.final
cdef class Agenda:
    cdef object _subscription
    cdef object _zone
    cdef bint _on_line
    cdef bint _quiet
    cdef bint _muted
    cdef public bint open
    cdef public bint due
    cdef public object next_change
    cdef object _day
    cdef object _shown_today

    cpdef mute(self, bint quiet)
    cpdef bint turn(self, long long now) except -1
    cpdef allowance(self, long long now)
    cpdef shown(self, Py_ssize_t count, long long now)
    cdef _look(self, long long now)
    cdef _decide(self)
