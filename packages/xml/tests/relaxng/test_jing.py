"""jing says the same of every schema and every document.

Each seed is 150 random schemas; `make nightly` takes more of them with RELAXNG_SEEDS=40.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lasthop_xml.relaxng.errors import SchemaError
from lasthop_xml.relaxng.schema import Schema, read_schema
from lasthop_xml.relaxng.validate import Validator
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml
from tests.relaxng.corpus import BAD, GOOD
from tests.relaxng.generated import Schemas
from tests.relaxng.jing import Question, ask
from tests.relaxng.sampling import Sampler

pytestmark = pytest.mark.peer

SEEDS = int(os.environ.get("RELAXNG_SEEDS", "2"))


def test_jing_agrees_on_all_schemas_and_documents(tmp_path: Path) -> None:
    cases = list(GOOD.values())
    questions = [Question(case.schema, case.valid + case.invalid, case.files) for case in cases]
    for case, answer in zip(cases, ask(questions, tmp_path), strict=True):
        assert answer.schema is None, case.schema
        valid = [said is None for said in answer.documents]
        expected = [True] * len(case.valid) + [False] * len(case.invalid)
        assert valid == expected, (case.schema, answer.documents)


def test_jing_refuses_what_we_refuse(tmp_path: Path) -> None:
    cases = list(BAD.values())
    answers = ask([Question(case.schema, (), case.files) for case in cases], tmp_path)
    for case, answer in zip(cases, answers, strict=True):
        assert (answer.schema is None) == case.peer_accepts, (case.schema, answer.schema)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_jing_agrees_on_random_schemas_and_documents(seed: int, tmp_path: Path) -> None:
    schemas = Schemas(seed)
    questions: list[Question] = []
    ours: list[list[bool] | None] = []
    for number in range(150):
        text = schemas.next()
        try:
            schema = read_schema(text)
        except SchemaError:
            questions.append(Question(text))
            ours.append(None)
            continue
        documents = _documents(schema, number)
        validator = Validator(schema)
        questions.append(Question(text, [serialize_xml(each).decode() for each in documents]))
        ours.append([validator.allows(parse_xml(serialize_xml(each))) for each in documents])
    accepted = valid = 0
    for question, mine, answer in zip(questions, ours, ask(questions, tmp_path), strict=True):
        assert (answer.schema is None) == (mine is not None), (question.schema, answer.schema)
        theirs = [said is None for said in answer.documents]
        assert mine is None or theirs == mine, (question, theirs, answer)
        accepted += mine is not None
        valid += sum(theirs)
    assert accepted > 20
    assert valid > 40


def _documents(schema: Schema, seed: int) -> list[EventList]:
    sampler = Sampler(schema, seed)
    found = []
    for _ in range(4):
        document = sampler.valid()
        if document is not None:
            found += [document, sampler.changed(document)]
    # Two texts in a row are one in XML, so that the events are not those that were sampled.
    return [each for each in found if len(each) > 2]
