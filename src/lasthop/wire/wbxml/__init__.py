"""Binary XML for the documents that a push carries (SI, SL, CO and EMN), to and from XML.

Start reading at `document` (what a document is) and `languages` (the token tables), then `encoder`
and `decoder` (the bytes); `xml_reader` and `xml_writer` know the text form, `validity` the document
type definitions.

    text -> read_xml -> Document -> encode -> octets -> decode -> Document -> write_xml -> text

Clauses cited as "WBXML 5.8" are those of the Binary XML Content Format, version 1.3.
"""
