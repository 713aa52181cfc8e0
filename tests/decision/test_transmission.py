"""The transmission algorithm by example: each branch of figure 3.6, and what was added to it."""

from __future__ import annotations

import msgspec
import pytest

from lasthop.clock import DAY, HOUR, MINUTE, SECOND
from lasthop.decision.budgets import BudgetHold, Budgets, BudgetState, Limit, Measure
from lasthop.decision.choice import Attempt, Choice, MessageToPlace, QueueTerms
from lasthop.decision.cost import Weights
from lasthop.decision.decide import Action
from lasthop.decision.delay import MAX_DELAY
from lasthop.decision.link_calendar import CalendarEntry, LinkCalendar
from lasthop.decision.links import Link, Tariff
from lasthop.decision.localtime import Period
from lasthop.decision.preferences import Preferences
from lasthop.decision.reasons import Code
from lasthop.decision.transmission import choose
from lasthop.errors import InvalidRequest, TooLarge
from tests.decision.worlds import MNO, MONDAY, SMS, WIFI, limits

NINE = MONDAY + 9 * HOUR
URGENT = QueueTerms("urgent")
NEWS = QueueTerms("news", max_delay=10 * MINUTE)
AT_WORK = LinkCalendar.of([CalendarEntry("wifi", (0, 1, 2, 3, 4), 9, 18, 0.9)], zone_name="UTC")


def ask(
    *current: Link,
    queue: QueueTerms = URGENT,
    budgets: Budgets | None = None,
    now: int = NINE,
    best: tuple[Link, ...] = (WIFI, MNO, SMS),
    calendar: LinkCalendar | None = AT_WORK,
    size: int = 512,
    since: int = NINE,
    before: int | None = None,
    tolerance: int | None = None,
    attempts: tuple[Attempt, ...] = (),
) -> Choice:
    return choose(
        MessageToPlace(size, since, before, tolerance, attempts),
        queue=queue,
        current=current,
        budgets=budgets or limits(),
        now=now,
        best=best,
        calendar=calendar,
    )


def spent(budgets: Budgets, link: Link, *, size: int = 512, now: int = NINE) -> Budgets:
    """The budgets after one message over the link."""
    hold = budgets.reserve(link.tariff.charge(size), queue="", link=link.label, now=now)
    assert isinstance(hold, BudgetHold)
    budgets.commit(hold.number, now=now)
    return budgets


def codes(choice: Choice) -> list[Code]:
    return [reason.code for reason in choice.reasons]


def test_an_intolerant_queue_takes_the_lowest_cost_at_once() -> None:
    choice = ask(SMS, MNO)
    assert (choice.action, choice.link) == (Action.SEND, "mno")
    assert [str(reason) for reason in choice.reasons] == [
        "sms costs 6.077",
        "mno has the lowest cost, 3.599",
    ]


def test_each_queue_has_its_own_weights() -> None:
    frugal_with_energy = QueueTerms("urgent", Weights(0, 1, 0, 0))
    assert ask(SMS, MNO, queue=frugal_with_energy).link == "sms"


def test_a_tolerant_queue_waits_for_the_thesis_nine_minutes() -> None:
    choice = ask(MNO, queue=NEWS)
    assert choice.action is Action.HOLD
    assert choice.until == NINE + 9 * MINUTE
    assert choice.wanted == ("wifi",)
    assert [str(reason) for reason in choice.reasons] == [
        "wifi is better and comes with probability 0.90: wait 540 s for it"
    ]
    assert ask(MNO, queue=NEWS, now=choice.until - 1).action is Action.HOLD
    sent = ask(MNO, queue=NEWS, now=choice.until)
    assert (sent.action, sent.link) == (Action.SEND, "mno")
    assert codes(sent) == [Code.WAITED_ENOUGH, Code.CHOSEN]


def test_the_wait_ends_when_the_better_link_comes() -> None:
    assert ask(MNO, WIFI, queue=NEWS).link == "wifi"


def test_nothing_is_waited_for_that_has_no_chance() -> None:
    evening = MONDAY + 20 * HOUR
    choice = ask(MNO, queue=NEWS, now=evening, since=evening)
    assert choice.action is Action.SEND
    assert ask(MNO, queue=NEWS, calendar=None).action is Action.SEND


def test_of_several_better_links_the_likeliest_sets_the_delay() -> None:
    both = LinkCalendar.of(
        [CalendarEntry("wifi", (0,), 0, 24, 0.3), CalendarEntry("mno", (0,), 0, 24, 0.5)],
        zone_name="UTC",
    )
    choice = ask(SMS, queue=NEWS, calendar=both)
    assert choice.until == NINE + 5 * MINUTE
    assert choice.wanted == ("wifi", "mno"), "the device is told the best first"


def test_a_wait_that_outlives_its_hope_is_cut_short() -> None:
    # Wifi is likely until 18:00. At 17:55 there are five minutes of it left in the ten of Dmax.
    late = MONDAY + 17 * HOUR + 55 * MINUTE
    assert ask(MNO, queue=NEWS, now=late, since=late).until == late + 9 * MINUTE
    after_six = late + 6 * MINUTE
    assert ask(MNO, queue=NEWS, now=after_six, since=late).action is Action.SEND


def test_a_link_that_is_up_takes_part_as_it_is() -> None:
    crowded = WIFI.measured(latency=60 * SECOND, contention=50.0)
    hasty = QueueTerms("news", Weights(0, 0, 1, 0), max_delay=10 * MINUTE)
    choice = ask(MNO, crowded, queue=hasty)
    assert (choice.action, choice.link) == (Action.SEND, "mno")


def test_a_publisher_may_tolerate_less_than_the_queue() -> None:
    assert ask(MNO, queue=NEWS, tolerance=MINUTE).until == NINE + 54 * SECOND
    assert ask(MNO, queue=NEWS, tolerance=0).action is Action.SEND


def test_a_wait_leaves_time_for_the_deadline() -> None:
    before = NINE + MINUTE
    choice = ask(MNO, queue=NEWS, before=before)
    assert choice.until == before - MNO.transit(512) - SECOND
    sent = ask(MNO, queue=NEWS, before=before, now=choice.until)
    assert sent.action is Action.SEND


def test_a_deadline_overrules_cost() -> None:
    cheap_but_slow = Link("slow", Tariff(), energy=1, latency=20 * SECOND, coverage=5000)
    assert ask(cheap_but_slow, MNO).link == "slow"
    choice = ask(cheap_but_slow, MNO, before=NINE + 5 * SECOND)
    assert choice.link == "mno"
    assert codes(choice) == [Code.TOO_SLOW, Code.CHOSEN]


def test_if_all_would_be_late_the_fastest_tries() -> None:
    choice = ask(SMS, MNO, before=NINE + 1000, queue=NEWS)
    assert (choice.action, choice.link) == (Action.SEND, "mno")
    assert codes(choice) == [Code.LATE_ANYWAY]


def test_what_has_expired_is_not_sent() -> None:
    choice = ask(MNO, before=NINE)
    assert choice.action is Action.EXPIRE
    assert str(choice.reasons[0]) == "2026-01-05T09:00:00Z has passed"


def test_a_limit_reroutes_and_says_so() -> None:
    budgets = limits(Limit(1000, Measure.BYTES, Period.DAY, link="mno"))
    choice = ask(SMS, MNO, budgets=spent(budgets, MNO))
    assert (choice.action, choice.link) == (Action.SEND, "sms")
    assert codes(choice) == [Code.OVER_LIMIT, Code.CHOSEN]
    assert choice.close == (), "a smaller message could still go over it"


def test_a_link_that_has_reached_its_limit_is_closed() -> None:
    budgets = spent(limits(Limit(512, Measure.BYTES, Period.DAY, link="mno")), MNO)
    choice = ask(SMS, MNO, budgets=budgets)
    assert choice.link == "sms"
    assert [(closure.link, closure.until) for closure in choice.close] == [("mno", MONDAY + DAY)]
    assert Code.LINK_CLOSED in codes(choice)


def test_short_messages_are_counted_as_the_carrier_does() -> None:
    budgets = limits(Limit(6, Measure.UNITS, Period.MONTH, link="sms"))
    assert ask(SMS, budgets=budgets).action is Action.SEND
    choice = ask(SMS, budgets=spent(budgets, SMS))
    assert choice.action is Action.HOLD
    assert str(choice.reasons[0]) == (
        "sms: 4 of 6 units per month over sms used, 4 more would break it;"
        " it ends 2026-02-01T00:00:00Z"
    )


def test_if_no_link_is_within_limits_the_message_is_held_until_one_may_be() -> None:
    budgets = limits(
        Limit(600, Measure.BYTES, Period.DAY, link="mno"),
        Limit(6000, Measure.MONEY, Period.WEEK, link="sms"),
    )
    spent(spent(budgets, MNO), SMS)
    choice = ask(SMS, MNO, budgets=budgets)
    assert choice.action is Action.HOLD
    assert choice.until == MONDAY + DAY
    assert choice.wanted == ("wifi",)
    assert ask(SMS, MNO, budgets=budgets, now=choice.until, since=NINE).link == "mno"


def test_a_queue_limit_holds_on_every_link() -> None:
    budgets = limits(Limit(1, Measure.MESSAGES, Period.DAY, queues=("urgent",)))
    budgets.reserve(MNO.tariff.charge(1), queue="urgent", link="mno", now=NINE)
    choice = ask(SMS, MNO, WIFI, budgets=budgets)
    assert choice.action is Action.HOLD
    assert choice.wanted == ()


def test_no_link_is_waited_for_whose_limit_is_reached() -> None:
    budgets = spent(limits(Limit(1, Measure.MESSAGES, Period.DAY, link="wifi")), WIFI)
    assert ask(MNO, queue=NEWS, budgets=budgets).action is Action.SEND


def test_what_fits_no_limit_is_held_without_a_time() -> None:
    budgets = limits(Limit(100, Measure.BYTES, Period.DAY))
    choice = ask(MNO, budgets=budgets)
    assert (choice.action, choice.until) == (Action.HOLD, None)
    assert codes(choice) == [Code.NEVER_FITS]


def test_without_a_link_the_message_waits_and_says_what_would_help() -> None:
    choice = ask(before=NINE + HOUR)
    assert (choice.action, choice.until) == (Action.HOLD, NINE + HOUR)
    assert choice.wanted == ("wifi", "mno", "sms")
    assert codes(choice) == [Code.NO_LINK]


def test_a_queue_may_be_kept_off_a_link() -> None:
    choice = ask(SMS, MNO, queue=QueueTerms("urgent", links=("sms",)))
    assert choice.link == "sms"
    assert codes(choice) == [Code.NOT_ALLOWED, Code.CHOSEN]


def test_a_missing_receipt_sends_it_over_another_link() -> None:
    first = ask(MNO, SMS)
    assert first.receipt_by == NINE + 2 * SECOND
    attempt = Attempt("mno", 0, NINE, NINE + 2 * SECOND)
    held = ask(MNO, SMS, attempts=(attempt,), now=NINE + SECOND)
    assert (held.action, held.until) == (Action.HOLD, attempt.receipt_by)
    again = ask(MNO, SMS, attempts=(attempt,), now=attempt.receipt_by)
    assert (again.action, again.link) == (Action.SEND, "sms")
    assert codes(again)[0] is Code.NO_RECEIPT
    third = ask(
        MNO,
        SMS,
        attempts=(attempt, Attempt("sms", 0, NINE, NINE + 60 * SECOND)),
        now=NINE + MINUTE,
    )
    assert third.link == "mno", "when all have failed once, cost decides again"


def test_a_lost_link_is_not_waited_for() -> None:
    attempt = Attempt("wifi", 0, NINE, NINE + HOUR)
    assert ask(MNO, attempts=(attempt,)).link == "mno"


def test_a_receipt_is_not_awaited_past_the_deadline_of_another_link() -> None:
    attempt = Attempt("sms", 0, NINE, NINE + 40 * SECOND)
    held = ask(SMS, MNO, attempts=(attempt,), before=NINE + 30 * SECOND)
    assert held.until == NINE + 30 * SECOND - MNO.transit(512) - SECOND
    sent = ask(SMS, MNO, attempts=(attempt,), before=NINE + 30 * SECOND, now=held.until)
    assert sent.link == "mno"


def test_several_channels_of_one_label_are_told_apart() -> None:
    near = Link("wifi", Tariff(), latency=1000, channel=7)
    far = Link("wifi", Tariff(), latency=9000, channel=8)
    assert ask(far, near).channel == 7


def test_a_logged_question_gives_the_logged_answer() -> None:
    budgets = spent(limits(Limit(1000, Measure.BYTES, Period.DAY, link="mno")), MNO)
    preferences = Preferences(
        zone="Europe/Berlin", links=(WIFI, MNO, SMS), queues=(NEWS,), calendar=AT_WORK
    )
    message = MessageToPlace(512, NINE, NINE + HOUR)
    log = msgspec.json.encode((message, preferences, (MNO, SMS), budgets.snapshot(), NINE))

    def answer(record: bytes) -> Choice:
        asked, terms, current, state, now = msgspec.json.decode(
            record, type=tuple[MessageToPlace, Preferences, tuple[Link, ...], BudgetState, int]
        )
        return choose(
            asked,
            queue=terms.queue("news"),
            current=current,
            budgets=Budgets.restore(state),
            now=now,
            best=terms.links,
            calendar=terms.calendar,
        )

    first = answer(log)
    assert first.action is Action.HOLD
    logged = msgspec.json.encode(first)
    assert msgspec.json.decode(logged, type=Choice) == first == answer(log)


def test_preferences_find_a_queue_by_name_or_by_default() -> None:
    patient = QueueTerms("", max_delay=MINUTE)
    preferences = Preferences(queues=(NEWS, patient), links=(WIFI,))
    assert preferences.queue("news") == NEWS
    assert preferences.queue("mail") == QueueTerms("mail", max_delay=MINUTE)
    assert Preferences().queue(None) == QueueTerms("")
    assert preferences.link("wifi") == WIFI
    assert preferences.link("sms") is None
    assert preferences.budgets().outstanding() == []


def test_questions_that_mean_nothing_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="same label and channel"):
        ask(WIFI, WIFI)
    with pytest.raises(InvalidRequest, match="size cannot be negative"):
        MessageToPlace(-1, NINE)
    with pytest.raises(InvalidRequest, match="between 0 and 31 days"):
        QueueTerms("news", max_delay=MAX_DELAY + 1)
    with pytest.raises(InvalidRequest, match="between 0 and 31 days"):
        MessageToPlace(1, NINE, delay_tolerance=-1)
    with pytest.raises(InvalidRequest, match="must have at least one link"):
        QueueTerms("news", links=())
    with pytest.raises(InvalidRequest, match="link is described twice"):
        Preferences(links=(WIFI, WIFI))
    with pytest.raises(InvalidRequest, match="queue is described twice"):
        Preferences(queues=(NEWS, NEWS))
    with pytest.raises(InvalidRequest, match="no such time zone"):
        Preferences(zone="Nowhere")
    with pytest.raises(TooLarge, match="too many links"):
        Preferences(links=(WIFI,) * 65)
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.json.decode(b'{"colour": "red"}', type=Preferences)
    with pytest.raises(InvalidRequest, match="price cannot be negative"):
        msgspec.json.decode(
            b'{"links": [{"label": "sms", "tariff": {"per_unit": -1}}]}', type=Preferences
        )
