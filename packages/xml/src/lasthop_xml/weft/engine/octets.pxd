# Types for the compiled engine; see docs/weft.md.
import cython
from libc.stdint cimport int64_t

cpdef object put_number(bytearray out, long long value)

@cython.locals(at=Py_ssize_t)
cpdef object put_flags(bytearray out, Py_ssize_t start, bytearray flags)

@cython.final
cdef class ByteSource:
    cdef public bytes data
    cdef public Py_ssize_t pos
    cdef public Py_ssize_t size
    cdef public Py_ssize_t room

    @cython.locals(data=bytes, pos=Py_ssize_t, byte=cython.longlong, value=cython.longlong, shift=cython.int)
    cpdef int64_t number(self) except -1
    @cython.locals(data=bytes, pos=Py_ssize_t, end=Py_ssize_t, at=Py_ssize_t, flags=bytearray)
    cpdef bytes flags(self, Py_ssize_t count)
    @cython.locals(pos=Py_ssize_t, end=Py_ssize_t)
    cpdef bytes octets(self, Py_ssize_t size)
    cpdef str digits(self, Py_ssize_t size)
    cpdef list groups(self, Py_ssize_t count)
