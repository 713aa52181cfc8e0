"""XAS: an XML document as a sequence of events, whatever its bytes look like (thesis, chapter 4).

Start reading at `events` (what a sequence consists of), then `sequence` (lists and streams of
events), `reader` and `writer` (a cursor and a sink), `transform` and `typed` (sequences made from
sequences). `xmlparse` and `xmlserialize` read and write XML; `lasthop_xml.formats` lists the other
formats.
"""
