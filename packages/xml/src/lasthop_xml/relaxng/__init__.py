"""RELAX NG in the compact syntax: the structure of documents, as a pattern over their events.

Start reading at `schema`, which reads a schema from text. `lexer` and `parser` build the tree of
`syntax`, `simplify` reduces it to a few kinds of patterns (section 4 of the RELAX NG
specification), and `restrictions` checks those (section 7). `validate` checks event sequences.
"""
