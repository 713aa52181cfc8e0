"""Datatypes of schemas: the two of RELAX NG itself, and those of XML Schema with their facets.

They only say which texts are values, and which texts mean the same. Values that are worth having
in Python are the business of `lasthop_xml.xas.types`.
"""
