"""`lasthop demo`: runs the whole system on one machine, and checks it by a ledger that relies on no
other part.

A gateway as users start it, devices with the real SDK on emulated bad links, publishers, readers,
and the pipeline that learns from what happens. The ledger records what publishers sent and what
applications saw; the report compares the two.
"""
