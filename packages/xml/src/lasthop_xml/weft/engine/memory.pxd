# Types for the compiled engine; see docs/weft.md.
import cython

from lasthop_xml.weft.engine.columns cimport Base, Column, Entry, Link, Place

@cython.final
cdef class Memory:
    cdef public Base clock
    cdef public list column_list
    cdef public dict columns
    cdef public long depth
    cdef public long longest
    cdef public long message
    cdef public list name_list
    cdef public dict names
    cdef public Place outside
    cdef public list place_list
    cdef public list run_list
    cdef public dict runs
    cdef public long size
    cdef public list space_list
    cdef public dict spaces
    cdef public Column start
    cdef public list type_list
    cdef public dict types

    cpdef grow(self, long size, long count)
    @cython.locals(column=Column, link=Link)
    cpdef Link follow(self, Column before, Entry entry, object run)
    @cython.locals(column=Column)
    cdef Link _selected(self, Column before, Entry entry, object run)
    @cython.locals(place=Place, found=Column)
    cdef Column _column(self, Column before, Column column, long index, object run)
    @cython.locals(base=Base, column=Column)
    cpdef Column new_column(self, Place place, object run, long selector, long selected)
    cpdef Place moved(self, Place place, object run)
    @cython.locals(place=Place)
    cpdef Place inside(self, Place outer, object name)
    @cython.locals(
        key=cython.long,
        guess=dict,
        entries=list,
        index=Py_ssize_t,
        usual=Link,
        entry=Entry,
    )
    cpdef Entry keep(self, Column before, Column column, object value, Py_ssize_t size)
