"""`lasthop chaos`: real processes under faults, judged by a ledger that asks the gateway nothing.

A gateway, devices and publishers run as users run them, every link through a proxy of its own.
Faults are drawn from a seed. Publishers write down what they were answered and devices what they
got; the ledger compares these files and nothing else.
"""
