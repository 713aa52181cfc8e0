"""Codec omission automata (thesis, section 5.4): events that a schema foresees need not be sent.

Both ends follow a document through the same states. A state foresees at most one event; if that
event comes, it is left out, and the other end puts it in again. Start reading at `positions` (the
places in an element's content), then `states` and `automaton`, and `machine` (both ends). `tables`
shows small automata as the thesis draws them. `encoder` and `decoder` are Xebu with omission.
"""
