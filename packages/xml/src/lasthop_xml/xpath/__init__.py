"""Content-based routing: many XPath subscriptions against one document, in one pass.

`parser` understands a subset of XPath 1.0 and brings it into the normal form of `pattern`.
`automaton` shares what subscriptions have in common, `matcher` runs it along a sequence of events,
and `subscriptions` is what a router uses. docs/xpath-routing.md has the subset and its cost.
"""
