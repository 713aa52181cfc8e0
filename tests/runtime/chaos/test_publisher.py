"""The publishers of chaos: what is open is repeated, a refusal is believed, and lies are noted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lasthop.runtime.chaos import publisher as module
from lasthop.runtime.chaos.account import AccountLine, Said, read_account
from lasthop.runtime.chaos.publisher import (
    ASKED_AGAIN,
    REMEMBERED,
    ChaosPublisher,
    Outcome,
    PublishAnswer,
    pap_answer,
    rest_answer,
)

ACCEPTED = PublishAnswer(Outcome.ACCEPTED, id="7")
REPEATED = PublishAnswer(Outcome.REPEATED, id="7")
REFUSED = PublishAnswer(Outcome.REFUSED, why="no room; nothing was done")
DENIED = PublishAnswer(Outcome.DENIED, why="404")
OPEN = PublishAnswer(Outcome.OPEN, why="reset")


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for pause in ("PAUSE", "BETWEEN_ATTEMPTS", "AFTER_A_REFUSAL"):
        monkeypatch.setattr(module, pause, 0.0)


class ScriptedDoor:
    """Gives the answers of a script, and then dies as a killed process does."""

    def __init__(self, script: Sequence[PublishAnswer]) -> None:
        self._script = list(script)
        self.asked: list[str] = []

    def targets(self, number: int) -> list[str]:
        return ["phone"]

    def ask(self, text: str, devices: list[str]) -> PublishAnswer:
        if not self._script:
            raise KeyboardInterrupt
        self.asked.append(text)
        return self._script.pop(0)


def publish(
    path: Path, script: Sequence[PublishAnswer], enough: Callable[[], bool] | None = None
) -> list[str]:
    """What is asked until the script is over, or it is enough."""
    door = ScriptedDoor(script)
    publisher = ChaosPublisher("shop", door, path)
    if enough is not None:
        publisher.run(enough)
        return door.asked
    with pytest.raises(KeyboardInterrupt):
        publisher.run(lambda: False)
    return door.asked


def known(path: Path) -> list[tuple[int, Said]]:
    return [(entry.number, entry.said) for entry in read_account(path) if entry.said != Said.SENT]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "account.jsonl"


def test_what_is_open_is_repeated_until_it_is_known(path: Path) -> None:
    asked = publish(path, [OPEN, OPEN, REPEATED, ACCEPTED])
    assert asked == ["shop-0", "shop-0", "shop-0", "shop-1"]
    assert known(path) == [(0, Said.ACCEPTED), (1, Said.ACCEPTED)]


def test_a_refusal_is_believed_and_the_next_message_follows(path: Path) -> None:
    assert publish(path, [REFUSED, DENIED, ACCEPTED]) == ["shop-0", "shop-1", "shop-2"]
    assert known(path) == [(0, Said.REFUSED), (1, Said.REFUSED), (2, Said.ACCEPTED)]


def test_a_refusal_after_an_open_attempt_tells_nothing_of_that_one(path: Path) -> None:
    assert publish(path, [OPEN, REFUSED, ACCEPTED]) == ["shop-0"] * 3
    assert known(path) == [(0, Said.ACCEPTED)]


def test_a_repetition_that_was_none_is_a_lie(path: Path) -> None:
    publish(path, [REPEATED])
    assert known(path) == [(0, Said.DENIED), (0, Said.ACCEPTED)]


def test_a_publisher_that_was_killed_goes_on_with_the_message_it_was_at(path: Path) -> None:
    publish(path, [ACCEPTED, OPEN])
    assert publish(path, [REPEATED, ACCEPTED]) == ["shop-1", "shop-2"]
    assert known(path) == [(0, Said.ACCEPTED), (1, Said.ACCEPTED), (2, Said.ACCEPTED)]
    publish(path, [ACCEPTED])
    assert [entry.number for entry in read_account(path) if entry.said == Said.SENT] == [
        0,
        1,
        2,
        3,
        4,
    ]


def test_the_last_outcome_is_known_before_a_publisher_ends(path: Path) -> None:
    publish(path, [OPEN])
    assert publish(path, [OPEN, ACCEPTED], enough=lambda: True) == ["shop-0", "shop-0"]
    assert known(path) == [(0, Said.ACCEPTED)]


@pytest.mark.parametrize(
    "answer,lies",
    [
        (REPEATED, 0),
        (OPEN, 0),
        (REFUSED, 0),
        (ACCEPTED, 1),
        (DENIED, 1),
        (PublishAnswer(Outcome.REPEATED, id="8"), 1),
    ],
)
def test_an_accepted_message_is_asked_for_again_and_has_to_be_known(
    path: Path, answer: PublishAnswer, lies: int
) -> None:
    assert REMEMBERED % ASKED_AGAIN == 0
    asked = publish(path, [*[ACCEPTED] * (REMEMBERED + 1), answer])
    assert asked[-2:] == [f"shop-{REMEMBERED}", "shop-1"]
    assert sum(entry.said == Said.DENIED for entry in read_account(path)) == lies


@pytest.mark.parametrize(
    "status,said,outcome",
    [
        (202, b'{"id": "7"}', Outcome.ACCEPTED),
        (200, b'{"id": "7", "repeated": true}', Outcome.REPEATED),
        (503, b'{"error": {"code": "overloaded", "detail": "no room"}}', Outcome.REFUSED),
        (429, b'{"error": {"code": "quota", "detail": "slower"}}', Outcome.REFUSED),
        (503, b'{"error": {"code": "outcome_open", "detail": "who knows"}}', Outcome.OPEN),
        (500, b"Internal Server Error", Outcome.OPEN),
        (404, b'{"error": {"code": "not_found", "detail": "who?"}}', Outcome.DENIED),
    ],
)
def test_answers_of_rest_mean_what_the_pages_say(
    status: int, said: bytes, outcome: Outcome
) -> None:
    assert rest_answer(status, said).outcome is outcome


@pytest.mark.parametrize(
    "code,outcome",
    [
        (1001, Outcome.ACCEPTED),
        (2007, Outcome.REPEATED),
        (4000, Outcome.OPEN),
        (4001, Outcome.REFUSED),
        (2002, Outcome.DENIED),
    ],
)
def test_codes_of_pap_mean_what_the_pages_say(code: int, outcome: Outcome) -> None:
    assert pap_answer(code, "1@pi", None).outcome is outcome


def test_an_entry_says_who_gets_the_message(path: Path) -> None:
    publish(path, [ACCEPTED])
    first = next(read_account(path))
    assert first == AccountLine(0, Said.SENT, "shop-0", ["phone"])
