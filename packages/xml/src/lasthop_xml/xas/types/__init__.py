"""The primitive types of XML Schema: their values and lexical forms (thesis, section 4.4).

`table` lists the types. Their binary forms belong to the serialization format: see
`lasthop_xml.xebu.values`.
"""
