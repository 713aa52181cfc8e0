"""The user of a device in rehearsal, who looks at ranked topics."""

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
"""The key of a look that was answered from the device's own messages."""


@dataclass(frozen=True, slots=True)
class LookResult:
    """The messages that one look has shown."""

    asked: int
    """The key of the look, or `LOCAL`."""
    keys: list[int]


class RankedReader:
    """A user who asks the gateway, and reads what the device holds if there is no contact or no
    answer soon."""

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
        """`busy` returns whether a commit is under way."""
        self._kernel = kernel
        self._random = random
        self._links = links
        self._write_time = write_time
        self._busy = busy
        self._show = show
        self._turn = turn
        self._glances: list[tuple[str, int | None]] = []
        """Looks that the user is about to take: the topic, and how many messages."""
        self._asked: dict[int, tuple[str, int | None]] = {}
        """Looks that the gateway has not answered yet, by key."""
        self._answers: list[Looked] = []
        self._answered: list[Looked] = []
        """Answers of the gateway that are durable and can be shown."""
        self.looked: list[LookResult] = []
        """The messages that every look has shown, in order of the looks."""
        self.empty_looks = 0
        """Answers of the gateway in a row that had nothing to show."""

    def restart(self) -> None:
        """Forget all looks after a crash: no answer is expected any more."""
        self._asked, self._answers, self._answered = {}, [], []

    def look(self, topic: str, wanted: int | None) -> None:
        """Look at a ranked topic for the best `wanted` messages."""
        self._glances.append((topic, wanted))
        self._turn()

    def unread(self, topic: str) -> int:
        """Return how many unread messages of a ranked topic the device holds."""
        session = self._links.session
        return session.ranked.unread(topic) if session is not None else 0

    @property
    def looking(self) -> bool:
        """Whether the user waits for an answer."""
        return bool(self._glances or self._asked or self._answers or self._answered)

    def hear(self, answer: Looked) -> None:
        """Handle the gateway's answer to a look; it is shown as soon as it is durable."""
        self._answers.append(answer)

    def refused(self, key: int) -> None:
        """Forget a look that the gateway refused."""
        self._asked.pop(key, None)

    def committed(self) -> None:
        """Note that the answers so far are durable."""
        self._answered += self._answers
        self._answers = []

    def work(self, session: DeviceSession) -> None:
        """Show the messages that the gateway answered with, and carry out the planned looks."""
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
        """Show the messages of an answer; the application has finished them at once."""
        if answer.key != LOCAL:
            self._asked.pop(answer.key, None)
            self.empty_looks = 0 if answer.messages else self.empty_looks + 1
        self.looked.append(LookResult(answer.key, [message.key for message in answer.messages]))
        for message in answer.messages:
            self._show(message)
            session.finished(message)
