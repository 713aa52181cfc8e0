# Types for the compiled engine; see docs/weft.md.
cdef class Column

cdef class Place:
    cdef public Place outer
    cdef public object name
    cdef public long depth
    cdef public long number
    cdef public dict inner

cdef class Link:
    cdef public object run
    cdef public Column column

cdef class Entry:
    cdef public Column column
    cdef public object value
    cdef public object index
    cdef public long code
    cdef public Link link
    cdef public bint linked

cdef class Base:
    cdef public long long number

cdef class Column:
    cdef public Base base
    cdef public long changes
    cdef public long credit
    cdef public object current
    cdef public list entries
    cdef public dict guess
    cdef public long long highest
    cdef public Entry last
    cdef public long linked
    cdef public dict links
    cdef public long long lowest
    cdef public long mask
    cdef public object model
    cdef public long number
    cdef public Entry other
    cdef public Column parent
    cdef public Place place
    cdef public object run
    cdef public long long scale
    cdef public bint selects
    cdef public long shape
    cdef public long shift
    cdef public long stamp
    cdef public dict tokens
    cdef public object type
    cdef public Link usual
    cdef public list word_list
    cdef public dict words
    cpdef void forget(self)
