"""XML for small messages: event sequences, binary forms, schemas, filters, security and SOAP.

Start reading at `xas`, the events that everything else works on; `formats` is the table of the
forms that a sequence can be written in.
"""

__version__ = "0.1.0"
