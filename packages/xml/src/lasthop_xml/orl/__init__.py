"""The Object Representation Language of section 4.5: application classes from a description.

`parser` reads a description, `generator` writes a Python module from it, and what such a module
needs when it runs is in `components` and `documents`.
"""
