"""Weft: messages that contain only what the receiver could not have guessed.

A document is runs of markup, which are the same in every message (a weaver's warp), and values
between them (the weft). Start reading at `runs` (documents as runs and values), then
`engine.memory` (what both ends learn), `session` (the two ends), `engine.writing` and
`engine.reading` (levels fast and deflate), `dense` (level max) and `snapshot` (state as bytes, and
trained profiles). docs/weft-format.md describes the bytes.
"""
