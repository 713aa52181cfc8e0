"""The user of a device in rehearsal who looks at ranked topics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from lasthop.clock import SECOND, Micros
from lasthop.device.message import Message
from lasthop.device.session import DeviceSession
from lasthop.device.session_events import Looked
from lasthop.simulation.device_links import DeviceLinks
from lasthop.simulation.kernel import Kernel

LOCAL = 0
"""In place of a look's key: what was there had to do."""


@dataclass(frozen=True, slots=True)
class LookResult:
    """What one look has shown."""

    asked: int
    """The key of the look, or `LOCAL`."""
    keys: list[int]


class RankedReader:
    """Asks the gateway if it is there, reads what is here if it is not, or does not answer soon."""

    def __init__(
        self,
        kernel: Kernel,
        random: Random,
        links: DeviceLinks,
        *,
        write_time: Micros,
        busy: Callable[[], bool],
        show: Callable[[Message], None],
        turn: Callable[[], None],
    ) -> None:
        """`busy` tells whether a commit is under way."""
        self._kernel = kernel
        self._random = random
        self._links = links
        self._write_time = write_time
        self._busy = busy
        self._show = show
        self._turn = turn
        self._glances: list[tuple[str, int | None]] = []
        """Looks that the user is about to take."""
        self._asked: dict[int, tuple[str, int | None]] = {}
        """Looks that the gateway has not answered."""
        self._answers: list[Looked] = []
        self._answered: list[Looked] = []
        """The same once they are durable."""
        self.looked: list[LookResult] = []
        """What every look has shown, for those who want to know."""
        self.empty_looks = 0
        """Answers of the gateway in a row that had nothing to show."""

    def restart(self) -> None:
        """After a crash nobody waits for an answer."""
        self._asked, self._answers, self._answered = {}, [], []

    def look(self, topic: str, wanted: int | None) -> None:
        """The user looks at a ranked topic."""
        self._glances.append((topic, wanted))
        self._turn()

    def unread(self, topic: str) -> int:
        """How many messages of a ranked topic the device keeps."""
        session = self._links.session
        return session.ranked.unread(topic) if session is not None else 0

    @property
    def looking(self) -> bool:
        """Whether the user waits for something."""
        return bool(self._glances or self._asked or self._answers or self._answered)

    def hear(self, answer: Looked) -> None:
        """The gateway answered. It is shown when it is durable that it may have been."""
        self._answers.append(answer)

    def refused(self, key: int) -> None:
        """The gateway will not answer a look."""
        self._asked.pop(key, None)

    def committed(self) -> None:
        """What was to be shown is durable."""
        self._answered += self._answers
        self._answers = []

    def work(self, session: DeviceSession) -> None:
        """See what was answered, and look."""
        answered, self._answered = self._answered, []
        for answer in answered:
            self._see(session, answer)
        glances, self._glances = self._glances, []
        for topic, wanted in glances:
            self._glance(session, topic, wanted)

    def _glance(self, session: DeviceSession, topic: str, wanted: int | None) -> None:
        now = self._kernel.now()
        if not self._links.open:
            self._answers.append(Looked(LOCAL, session.ranked.read(topic, wanted, now)))
            return
        key = session.ranked.look(topic, wanted, now)
        self._asked[key] = (topic, wanted)
        patience = self._random.choice((SECOND, 10 * SECOND, 60 * SECOND))
        self._kernel.after(patience, lambda: self._lose_patience(session, key))

    def _lose_patience(self, session: DeviceSession, key: int) -> None:
        if session is not self._links.session or key not in self._asked:
            return
        if self._busy():
            self._kernel.after(self._write_time, lambda: self._lose_patience(session, key))
            return
        topic, wanted = self._asked[key]
        messages = session.ranked.read_instead(key, topic, wanted, self._kernel.now())
        if messages is not None:
            del self._asked[key]
            self._answers.append(Looked(LOCAL, messages))
            self._turn()

    def _see(self, session: DeviceSession, answer: Looked) -> None:
        """What a look shows; the application is done with it at once."""
        if answer.key != LOCAL:
            self._asked.pop(answer.key, None)
            self.empty_looks = 0 if answer.messages else self.empty_looks + 1
        self.looked.append(LookResult(answer.key, [message.key for message in answer.messages]))
        for message in answer.messages:
            self._show(message)
            session.finished(message)
