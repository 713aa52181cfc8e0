"""The ledger: what publishers were answered against what devices got, from files alone.

The gateway is asked nothing, and nothing that it has written is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import msgspec

from lasthop.runtime.chaos.account import AccountLine, Said, whole_lines

Devices: TypeAlias = Mapping[str, Sequence[str]]
"""The texts that every device got, in the order in which it got them."""

MOST_FINDINGS = 50
"""Broken promises that are described; all of them are counted."""


@dataclass(slots=True)
class ChaosVerdict:
    """What the ledger found. All counts but the findings are of deliveries: a message for three
    devices is three."""

    accepted: int = 0
    delivered: int = 0
    refused: int = 0
    lost: int = 0
    duplicated: int = 0
    misordered: int = 0
    untrue: int = 0
    stuck: int = 0
    findings: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return not (self.lost or self.duplicated or self.misordered or self.untrue or self.stuck)

    def note(self, finding: str) -> None:
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(finding)


class Ledger:
    """Collects the accounts of publishers, and judges what devices got by them."""

    def __init__(self) -> None:
        self._state: dict[str, Said] = {}
        self._entry: dict[str, AccountLine] = {}
        self._place: dict[str, tuple[str, int]] = {}
        self._denied: list[AccountLine] = []

    def add(self, publisher: str, entries: Iterable[AccountLine]) -> None:
        """Add the account that one publisher has written."""
        for entry in entries:
            if entry.said is Said.DENIED:
                self._denied.append(entry)
                continue
            self._state[entry.text] = entry.said
            self._entry[entry.text] = entry
            self._place[entry.text] = (publisher, entry.number)

    def complete(self, devices: Devices) -> bool:
        """Whether every device has got what was accepted for it."""
        got = {device: set(texts) for device, texts in devices.items()}
        return all(
            text in got[device]
            for text, state in self._state.items()
            if state is Said.ACCEPTED
            for device in self._entry[text].devices
        )

    def judge(self, devices: Devices, in_time: Mapping[str, int] | None = None) -> ChaosVerdict:
        """Compare the accounts with what devices got.

        `in_time` tells how many of a device's texts had come before the time was up; without it
        all of them had.
        """
        verdict = ChaosVerdict()
        for device, texts in devices.items():
            self._judge_device(verdict, device, texts)
        self._judge_accounts(verdict, devices, in_time or {})
        for entry in self._denied:
            verdict.untrue += 1
            verdict.note(f"untrue: {entry.text}: {entry.why}")
        return verdict

    def _judge_device(self, verdict: ChaosVerdict, device: str, texts: Sequence[str]) -> None:
        """Look for what came twice, in the wrong order, or should not have come."""
        seen: set[str] = set()
        last: defaultdict[str, int] = defaultdict(lambda: -1)
        for text in texts:
            if text in seen:
                verdict.duplicated += 1
                verdict.note(f"duplicated: {device} got {text} again")
                continue
            seen.add(text)
            entry = self._entry.get(text)
            if entry is None or device not in entry.devices:
                verdict.untrue += 1
                verdict.note(f"untrue: {device} got {text!r}, which nobody sent there")
                continue
            if self._state[text] is Said.REFUSED:
                verdict.untrue += 1
                verdict.note(f"untrue: {device} got {text}, which was refused: {entry.why}")
            publisher, number = self._place[text]
            if number < last[publisher]:
                verdict.misordered += 1
                verdict.note(f"misordered: {device} got {text} after number {last[publisher]}")
            last[publisher] = max(last[publisher], number)

    def _judge_accounts(
        self, verdict: ChaosVerdict, devices: Devices, in_time: Mapping[str, int]
    ) -> None:
        """Look for what should have come, and did not or too late."""
        got = {device: set(texts) for device, texts in devices.items()}
        early = {device: set(texts[: in_time.get(device)]) for device, texts in devices.items()}
        for text, state in self._state.items():
            targets = self._entry[text].devices
            if state is Said.REFUSED:
                verdict.refused += len(targets)
            elif state is Said.SENT:
                # Whoever has sent it knows neither that it was accepted nor that it was not.
                verdict.stuck += 1
                verdict.note(f"stuck: {text} was never answered")
            else:
                verdict.accepted += len(targets)
                for device in targets:
                    if text not in got.get(device, ()):
                        verdict.lost += 1
                        verdict.note(f"lost: {device} never got {text} ({self._entry[text].id})")
                        continue
                    verdict.delivered += 1
                    if text not in early[device]:
                        verdict.stuck += 1
                        verdict.note(f"stuck: {device} got {text} too late")


class _LedgerLine(msgspec.Struct):
    """A line of a device's output. The Python device calls a text body, the other one text."""

    body: str | None = None
    text: str | None = None


def read_texts(path: Path) -> list[str]:
    """Return the texts that a device has written down, in order."""
    decoder = msgspec.json.Decoder(_LedgerLine)
    lines = [decoder.decode(line) for line in whole_lines(path)]
    return [line.body if line.body is not None else line.text or "" for line in lines]
