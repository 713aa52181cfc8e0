"""Primitive types: values and their lexical forms (section 4.4).

`table` lists them. Their binary forms belong to the serialization format: see
`lasthop_xml.xebu.values`.
"""
