# Types for the compiled engine; see docs/weft.md.
import cython

from lasthop_xml.weft.engine.columns cimport Base, Column
from lasthop_xml.weft.engine.octets cimport ByteSource, put_number

cdef long BOOLEAN, BYTES, FRACTION, NAME, NUMBER, TEXT, TIME
cdef long MAX_WORDS, MOST_WORDS, LONGEST_SPLIT, _FRACTION_TEXT, _FRACTION_BYTES, _EPOCH_DAY
cdef long long LARGEST

@cython.locals(shape=cython.long)
cpdef Py_ssize_t write_value(Column column, bytearray out, object value) except -1

@cython.locals(words=list, count=Py_ssize_t, known=dict, word=str, data=bytes)
cdef object _write_text(Column column, bytearray out, object text)

@cython.locals(data=bytes, groups=list, group=str, size=Py_ssize_t)
cdef object _write_word(dict known, bytearray out, str word)

@cython.locals(base=Base, step=cython.longlong, scale=cython.longlong, code=cython.longlong)
cdef object _write_step(Column column, bytearray out, long long number)

@cython.locals(size=cython.double, scale=cython.long)
cdef object _write_fraction(Column column, bytearray out, double value)

cpdef object fraction_digits(double size, long scale)

@cython.locals(shape=cython.long, number=cython.longlong, text=str)
cpdef object read_value(Column column, ByteSource source, long long code)

cdef object _from_text(Column column, ByteSource source, long long code)

@cython.locals(count=Py_ssize_t, known=list, words=list, form=cython.long)
cdef str _read_text(Column column, ByteSource source, long long code)

@cython.locals(base=Base, step=cython.longlong, scale=cython.longlong, number=cython.longlong)
cdef long long _read_step(Column column, ByteSource source, long long code) except? -1

cdef object _read_fraction(Column column, ByteSource source, long long code)
