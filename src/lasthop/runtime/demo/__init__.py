"""`lasthop demo`: everything at once on one machine, judged by a ledger that trusts no other part.

A gateway as users start it, devices with the real SDK on emulated bad links, publishers, readers,
and the pipeline that learns from what happens. The ledger records what publishers sent and what
applications saw; the report compares the two.
"""
