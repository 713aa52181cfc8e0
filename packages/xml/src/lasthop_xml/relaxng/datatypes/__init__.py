"""The datatypes of schemas: the two of RELAX NG itself, and those of XML Schema with their facets.

They only tell which texts are values, and which texts have the same meaning. Values as Python
objects are in `lasthop_xml.xas.types`.
"""
