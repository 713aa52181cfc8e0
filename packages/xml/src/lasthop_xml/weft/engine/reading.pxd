# Types for the compiled engine; see docs/weft.md.
import cython

from lasthop_xml.weft.engine.columns cimport Column, Entry, Link, Place
from lasthop_xml.weft.engine.forms cimport read_value
from lasthop_xml.weft.engine.memory cimport Memory
from lasthop_xml.weft.engine.octets cimport ByteSource

@cython.final
cdef class BodyReader:
    cdef public Memory memory
    cdef public object limits
    cdef public Py_ssize_t events
    cdef public Py_ssize_t room
    cdef public ByteSource source

    @cython.locals(
        memory=Memory,
        source=ByteSource,
        count=Py_ssize_t,
        pos=Py_ssize_t,
        flags=bytes,
        missed=cython.uchar,
        index=Py_ssize_t,
        runs=list,
        values=list,
        before=Entry,
        entry=Entry,
        found=Entry,
        link=Link,
        column=Column,
        code=cython.longlong,
    )
    cpdef object document(self, bytes data, Py_ssize_t start)
    @cython.locals(memory=Memory, source=ByteSource, index=cython.longlong)
    cdef Link _follow(self, Column before, Entry entry)
