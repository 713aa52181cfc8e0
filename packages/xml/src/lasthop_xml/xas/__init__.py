"""XAS: an XML document as a sequence of events (seed 002, chapter 4), whatever its bytes look like.

Start reading at `events` (what can stand in a sequence), then `sequence` (lists and streams of it),
`reader` and `writer` (a cursor and a sink), `transform` and `typed` (sequences made of sequences).
`xmlparse` and `xmlserialize` know XML; `formats` is the table of everything else that does.
"""
