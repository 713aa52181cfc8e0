"""Level `max`: the same walk along links, with every choice given its probability.

Start reading at `coder` (choices as bytes), then `models` (probabilities that learn), `values` and
`walk`. One class walks for both ends: when encoding it is told each choice, when decoding it learns
it, and everything that depends on the choice is the same code.
"""
