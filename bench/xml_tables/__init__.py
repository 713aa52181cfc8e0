"""The thesis's tables about XML processing, in our setting: 7.5, 7.7 and 7.9.

`processing` compares ways to work with documents, `formats` ways to send them, `footprint` what has
to be loaded for it. `command` runs them and prints the tables. Sizes and times beside everybody
else's are what `lasthop bench xml` is for.
"""
