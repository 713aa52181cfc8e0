"""Level `max`: the same walk along links, with every choice coded by its probability.

Start reading at `coder` (choices as bytes), then `models` (probabilities that learn), `letters` and
`walk`. One class walks for both ends: when encoding it is given each choice, when decoding it
returns it, and everything that depends on the choice is the same code.
"""
