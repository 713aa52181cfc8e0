"""Content-based routing: many XPath subscriptions matched with a document in one pass.

`parser` reads a subset of XPath 1.0 and brings it into the normal form of `pattern`. `automaton`
merges what subscriptions have in common, `matcher` runs it along a sequence of events, and
`subscriptions` is the table that a router uses. docs/xpath-routing.md describes the subset and its
cost.
"""
