# Types for the compiled engine; see docs/weft.md.
#
# Fields stand in the order in which a walk needs them: what a right guess touches comes first, so
# that it lies together.
import cython

cdef class Column

@cython.final
cdef class Place:
    cdef public Place outer
    cdef public object name
    cdef public long depth
    cdef public long number
    cdef public dict inner

@cython.final
cdef class Link:
    cdef public object run
    cdef public Column column

@cython.final
cdef class Entry:
    cdef public Link link
    cdef public object value
    cdef public long index
    cdef public long code
    cdef public Column column
    cdef public bint linked

@cython.final
cdef class Base:
    cdef public long long number

@cython.final
cdef class Column:
    cdef public Column parent
    cdef public dict guess
    cdef public Entry last
    cdef public long current
    cdef public long shape
    cdef public long credit
    cdef public dict tokens
    cdef public list entries
    cdef public long mask
    cdef public long shift
    cdef public Base base
    cdef public long long scale
    cdef public Entry other
    cdef public Link usual
    cdef public bint selects
    cdef public long changes
    cdef public long linked
    cdef public long stamp
    cdef public long number
    cdef public long long lowest
    cdef public long long highest
    cdef public dict words
    cdef public list word_list
    cdef public dict links
    cdef public Place place
    cdef public object run
    cdef public object type
    cdef public object model
    cpdef void forget(self)
