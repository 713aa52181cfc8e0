"""Traces of deliveries, as parts of the traces of publishers and devices.

    exported events ─▶ journeys ─▶ shipping ─▶ OTLP over HTTP, to a collector
                       (no I/O)     (a thread)

Traces do not delay messages: events are read after they were committed, only one thread waits
for a collector that is slow or away, and spans that do not fit into its queue are dropped
and counted.
"""
