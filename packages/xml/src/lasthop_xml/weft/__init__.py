"""Weft: the events of XAS as what both ends could not have guessed.

Runs of markup are the warp, the same in every message; values are drawn through them. Start reading
at `runs` (documents as runs and values), then `engine.memory` (what both ends learn), `session`
(the two ends), `engine.writing` and `engine.reading` (levels fast and deflate), `dense` (level max)
and `snapshot` (state as bytes, and trained profiles). docs/weft.md describes the bytes.
"""
