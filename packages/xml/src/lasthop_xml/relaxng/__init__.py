"""RELAX NG in the compact syntax: what a document may look like, as a pattern over its events.

Start reading at `schema` (text in, schema out). `lexer` and `parser` give the tree of `syntax`,
`simplify` the few kinds of patterns that are left of it (section 4 of the specification of RELAX
NG), `restrictions` what they must not do (section 7). `validate` checks event sequences.
"""
