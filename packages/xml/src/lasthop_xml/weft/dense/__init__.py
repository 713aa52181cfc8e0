"""Level `max`: the same walk along links, with every choice coded by its probability.

Start reading at `coder` (choices as bytes), then `models` (probabilities that learn), `letters` and
`walk`. The same class encodes and decodes: when encoding, it is given each choice; when decoding,
it reads the choice from the message. Everything that depends on a choice is the same code.
"""
