"""The inner loops of levels fast and deflate, and the memory that all levels share.

These modules can be compiled (`make accelerate`); the `.pxd` files beside them give the types for
that. They also run uncompiled, and `lasthop_xml.weft.engines` chooses.
"""
