"""The hop protocol over HTTP requests, sans-I/O: an unordered mapping that loses nothing.

A device asks and the gateway answers; both questions and answers carry units. `asking` is the
device's side, `answering` the gateway's, `bodies` what travels between them. Every request has a
number, so that one whose answer got lost is simply made again: its units are taken once, and its
answer is the same.
"""
