"""The Wireless Session Protocol, as far as a push needs it: headers, PDUs and their parts.

Start reading at `headers` (text lines to and from octets), with `values`, `structured` and `media`
for what a value can be, and `kinds` and `primitives` for the parts of values; then `pdus` (the
PDUs), `sir` (the request to open a session) and `applications` (the application on the device). The
numbers are in `fields`, `content_types`, `parameters`, `languages` and `registry`.

Clauses cited as "WSP 8.4.2" are those of the Wireless Session Protocol (WAP-230).
"""
