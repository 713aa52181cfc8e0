# Types for the compiled engine; see docs/weft.md.
import cython

@cython.final
cdef class Chain:
    cdef public unsigned int link
    cdef public long long messages
    cdef unsigned int _next
    cdef unsigned int _check

    @cython.locals(link=cython.uint, check=cython.uint)
    cpdef bytes sealed(self, bytes head, bytes body, object document)
    @cython.locals(link=cython.uint, check=cython.uint, body=bytes)
    cpdef bytes opened(self, bytes message, Py_ssize_t size)
    @cython.locals(link=cython.uint)
    cpdef bint accepted(self, object document) except -1

cdef tuple _OCTETS

cdef long _number(bytes message, Py_ssize_t size) except -1
