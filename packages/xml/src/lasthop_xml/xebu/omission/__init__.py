"""Codec omission automata (seed 002, section 5.4): what a schema foresees need not be sent.

Both ends follow a document through the same states. A state foresees at most one event; if it does
come, it is left out, and the other end puts it in again. Start reading at `positions` (where in an
element's content we can be), then `states` and `automaton`, `machine` (both ends of it). `tables`
shows small automata as the thesis draws them. `encoder` and `decoder` are Xebu with all of it.
"""
