# Types for the compiled engine; see docs/weft.md.
import cython

from lasthop_xml.weft.engine.columns cimport Column, Entry, Link
from lasthop_xml.weft.engine.forms cimport write_value
from lasthop_xml.weft.engine.memory cimport Memory
from lasthop_xml.weft.engine.octets cimport put_flags, put_number

@cython.final
cdef class BodyWriter:
    cdef public Memory memory
    cdef public bytearray out

    @cython.locals(
        memory=Memory,
        count=Py_ssize_t,
        out=bytearray,
        missed=bytearray,
        before=Entry,
        entry=Entry,
        at=Py_ssize_t,
        link=Link,
        column=Column,
        guess=Entry,
        found=Entry,
        items=list,
        steps=list,
        start=Py_ssize_t,
        code=cython.long,
        size=Py_ssize_t,
    )
    cpdef bytes body(self, object runs, object values)
    @cython.locals(memory=Memory)
    cdef Link _follow(self, Column before, Entry entry, object run)
