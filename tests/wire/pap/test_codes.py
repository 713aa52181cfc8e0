"""The tables of codes and states agree with one another and with the errors."""

import inspect

from lasthop import errors
from lasthop.errors import LasthopError
from lasthop.wire.pap.codes import (
    ABORT_CODES,
    CODES,
    STATES,
    CodeClass,
    CodeUse,
    MessageState,
    abort_code,
    look_up,
)


def test_every_code_is_there() -> None:
    assert sorted(CODES) == [
        *(1000, 1001),
        *range(2000, 2009),
        *range(3000, 3012),
        *(4000, 4001),
        *(5000, *range(5026, 5031)),
    ]
    assert all(number == code.number and code.operations for number, code in CODES.items())
    assert {code.code_class for code in CODES.values()} == set(CodeClass)
    assert len({code.name for code in CODES.values()}) == len(CODES)


def test_every_operation_can_be_refused() -> None:
    for operation in CodeUse:
        classes = {c.code_class for c in CODES.values() if operation in c.operations}
        assert {CodeClass.INITIATOR_ERROR, CodeClass.SERVER_ERROR} <= classes


def test_what_only_one_operation_says() -> None:
    assert CODES[1001].operations == {CodeUse.PUSH, CodeUse.STATUS}
    assert CODES[2007].operations == {CodeUse.PUSH}
    assert CODES[3008].operations == {CodeUse.CAPABILITIES}
    assert CODES[5027].operations == {CodeUse.STATUS, CodeUse.OUTCOME}


def test_a_code_of_the_future_is_read_by_its_class() -> None:
    assert look_up(2007) is CODES[2007]
    assert look_up(2999) is CODES[2000]
    assert look_up(1500) is CODES[1000]
    assert look_up(9000) is None


def test_every_state_has_its_codes() -> None:
    assert set(STATES) == set(MessageState)
    for state, facts in STATES.items():
        assert facts.code in facts.codes <= set(CODES)
        assert facts.final == (state is not MessageState.PENDING)
        said = CodeUse.PUSH if state is MessageState.REJECTED else CodeUse.STATUS
        assert state is MessageState.REJECTED or said in CODES[facts.code].operations


def test_abort_reasons_have_their_codes() -> None:
    assert [abort_code(reason) for reason in range(0xEA, 0xEF)] == list(range(5026, 5031))
    assert abort_code(0xE0) == abort_code(0) == 5000
    assert set(ABORT_CODES.values()) < STATES[MessageState.ABORTED].codes


def test_every_error_has_a_code_of_the_table() -> None:
    for _, error in inspect.getmembers(errors, inspect.isclass):
        if issubclass(error, LasthopError):
            assert error.pap_code in CODES
