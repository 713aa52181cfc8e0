"""jing says the same of every schema and every document."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wire.relaxng.corpus import BAD, GOOD
from tests.wire.relaxng.jing import Question, ask

pytestmark = pytest.mark.peer


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
