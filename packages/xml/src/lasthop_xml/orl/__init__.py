"""The Object Representation Language (thesis, section 4.5): Python classes generated from a
description of their XML.

`parser` reads a description and `generator` writes a Python module from it; `components` and
`documents` are used by the generated module when it runs.
"""
