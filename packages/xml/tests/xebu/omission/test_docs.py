"""The examples of docs/omission-automata.md work as they stand there."""

import re

from lasthop_xml.relaxng.schema import read_schema
from lasthop_xml.xebu.omission.automaton import Automaton
from lasthop_xml.xebu.omission.tables import decoder_table, encoder_table
from tests.places import DOCS
from tests.xebu.omission.schemas import SCHEMAS

PAGE = (DOCS / "omission-automata.md").read_text()


def test_the_examples_work() -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(examples) == 2
    for code in examples:
        exec(compile(code, "omission-automata.md", "exec"), {})


def test_the_tables_are_those_of_the_program() -> None:
    automaton = Automaton(read_schema(SCHEMAS["figure 5.1"]))
    for edge in (*encoder_table(automaton), *decoder_table(automaton)):
        assert str(edge) in PAGE
