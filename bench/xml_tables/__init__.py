"""The thesis's tables about XML processing, in our setting: 7.5, 7.7 and 7.9.

`processing` compares ways to work with documents, `formats` ways to send them, `footprint` the code
that they load. `command` runs them and prints the tables. `lasthop bench xml` compares sizes and
times with other libraries.
"""
