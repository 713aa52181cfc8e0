"""Traces: what became of a message, among what its publisher did before and its device after.

    overheard events ─▶ journeys ─▶ shipping ─▶ OTLP over HTTP, to a collector
                       (no I/O)     (a thread)

Nothing here is on the way of a message: events are heard after they were committed, a collector
that is slow or away is waited for by one thread, and what does not fit into its queue is dropped
and counted.
"""
