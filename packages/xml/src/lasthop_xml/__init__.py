"""XML for small messages: event sequences, binary forms, schemas, filters, security and SOAP.

Start reading at `xas`, the events that everything else works on; `formats` is the table of the
forms that a sequence of events can be written in. "The thesis" is "XML Messaging for Mobile
Devices", which XAS, Xebu and ORL come from; section numbers without a name are its sections.
"""

__version__ = "0.1.0"
