"""When a user reads: the chance of a read in every hour of the day, learned from past reads.

The chance depends on the hour (nobody reads while asleep) and on how often the user has looked
already today (a user who looks twice a day and has done so will not look again). Old days fade, so
that a new habit is learned. Hours are those of UTC: when the clocks change, the rhythm shifts by an
hour and is learned again.
"""

from __future__ import annotations

from math import exp

from lasthop.clock import DAY, HOUR, Micros

HOURS = 24
LOOKS = 4
"""How many numbers of reads in a day are distinguished: none yet, one, two, more."""

FADING = 0.99
"""The weight that a day's observations keep a day later; after ten weeks half of it is left."""

DOUBT = 3.0
"""The weight of the broader average, in hours of observation, compared with what was seen in one
hour of the day."""

FIRST_GUESS = 2.0 / HOURS
"""The number of reads per hour that is assumed before anything is known: two a day."""

HORIZON = 3 * HOURS
"""The number of hours that a forecast looks ahead; an event that lives longer is assumed to be
read."""


class Rhythm:
    """Counts reads and the time without reads, by hour of the day and by reads so far that day."""

    def __init__(self) -> None:
        self._reads = [[0.0] * LOOKS for _ in range(HOURS)]
        self._hours = [[0.0] * LOOKS for _ in range(HOURS)]
        self._rates = [[FIRST_GUESS] * LOOKS for _ in range(HOURS)]
        self._dawn: Micros = 0
        """The time of day at which one day of reads ends and the next begins: in the quietest
        hours."""
        self._seen_until: Micros | None = None
        self._day = 0
        self._looks = 0

    def read(self, at: Micros) -> None:
        """Note that the user looked; the time since the last read was time without a read."""
        if self._seen_until is None:
            self._seen_until = at
            self._day = (at - self._dawn) // DAY
        days = at // DAY - self._seen_until // DAY
        if days > 0:
            self._fade(FADING ** min(days, 365))
        self._watch(at)
        self._reads[at // HOUR % HOURS][min(self._looks, LOOKS - 1)] += 1
        self._looks += 1
        self._learn()

    def _watch(self, until: Micros) -> None:
        """Count the time since the last read, hour by hour, but no more than a month of it."""
        assert self._seen_until is not None
        moment = max(self._seen_until, until - 30 * DAY)
        while moment < until:
            self._turn(moment)
            end = min(until, (moment // HOUR + 1) * HOUR)
            cell = min(self._looks, LOOKS - 1)
            self._hours[moment // HOUR % HOURS][cell] += (end - moment) / HOUR
            moment = end
        self._seen_until = max(self._seen_until, until)
        self._turn(until)

    def _turn(self, moment: Micros) -> None:
        day = (moment - self._dawn) // DAY
        if day != self._day:
            self._day, self._looks = day, 0

    def _fade(self, factor: float) -> None:
        for table in (self._reads, self._hours):
            for row in table:
                for look in range(LOOKS):
                    row[look] *= factor

    def _learn(self) -> None:
        """Compute the rate of every cell from what was seen there, its hour's average and the
        overall average."""
        reads = [sum(row) for row in self._reads]
        hours = [sum(row) for row in self._hours]
        overall = (sum(reads) + FIRST_GUESS * DOUBT) / (sum(hours) + DOUBT)
        for hour in range(HOURS):
            usual = (reads[hour] + overall * DOUBT) / (hours[hour] + DOUBT)
            self._rates[hour] = [
                (seen + usual * DOUBT) / (spent + DOUBT)
                for seen, spent in zip(self._reads[hour], self._hours[hour], strict=True)
            ]
        quiet = [sum(reads[(hour + step) % HOURS] for step in range(4)) for hour in range(HOURS)]
        self._dawn = (quiet.index(min(quiet)) + 2) % HOURS * HOUR

    def chance(self, now: Micros, until: Micros) -> float:
        """Return the probability that the user looks before `until`."""
        day = (now - self._dawn) // DAY
        looks = min(self._looks, LOOKS - 1) if day == self._day else 0
        expected = 0.0
        moment = now
        end = min(until, now + HORIZON * HOUR)
        while moment < end:
            step = min(end, (moment // HOUR + 1) * HOUR)
            if (moment - self._dawn) // DAY != day:
                looks = 0
            expected += self._rates[moment // HOUR % HOURS][looks] * (step - moment) / HOUR
            moment = step
        return 1.0 - exp(-expected)
