"""The paper's sentences beside what is measured, as Markdown tables for a page."""

from __future__ import annotations

from collections.abc import Sequence

from lasthop.simulation.last_hop.sentences import OURS, Measured, Reading, Sentence

YES, NO = "agrees", "deviates"


def sentence_rows(measured: Sequence[Measured]) -> dict[int, list[str]]:
    """Return a row for each sentence under our own reading, by figure."""
    rows: dict[int, list[str]] = {}
    for found in measured:
        if found.reading is OURS:
            rows.setdefault(found.sentence.figure, []).append(sentence_row(found))
    return rows


def sentence_row(found: Measured) -> str:
    """Return the row of one sentence: its text, our figures, the criterion and the verdict."""
    sentence = found.sentence
    verdict = YES if found.holds else f"**{NO}**"
    return f"| {sentence.text} | {figures(found)} | {sentence.criterion} | {verdict} |"


def figures(found: Measured) -> str:
    """Return the measurements that are shown of a sentence."""
    places = found.sentence.shown or range(len(found.values))
    return "; ".join(
        f"{found.sentence.probes[place].label}: {percent(found.values[place])}" for place in places
    )


def percent(value: float) -> str:
    """Return a share in percent, with one digit after the point."""
    return f"{100 * value:.1f} %"


def reading_rows(measured: Sequence[Measured], figure: int) -> list[str]:
    """Return a table of the sentences of a figure under all readings: a row for each reading."""
    about = [found for found in measured if found.sentence.figure == figure]
    sentences = list(dict.fromkeys(found.sentence for found in about))
    readings = list(dict.fromkeys(found.reading.name for found in about))
    by_place = {(found.reading.name, found.sentence): found for found in about}
    numbers = " | ".join(f"{number}" for number in range(1, len(sentences) + 1))
    rows = [f"| reading | {numbers} |", "|---" * (len(sentences) + 1) + "|"]
    for name in readings:
        cells = [_cell(by_place[name, sentence]) for sentence in sentences]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return rows


def _cell(found: Measured) -> str:
    return "yes" if found.holds else f"no: {_brief(found)}"


def _brief(found: Measured) -> str:
    places = found.sentence.shown or range(len(found.values))
    return ", ".join(f"{100 * found.values[place]:.1f}" for place in places) + " %"


def tables(measured: Sequence[Measured]) -> str:
    """Return all tables as Markdown: each figure with its sentences, then with all readings."""
    lines: list[str] = []
    for figure, rows in sentence_rows(measured).items():
        lines += [
            f"### Figure {figure}",
            "",
            "| the paper says | here | criterion | |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
        if _differ([found for found in measured if found.sentence.figure == figure]):
            lines += [*reading_rows(measured, figure), ""]
    return "\n".join(lines)


def _differ(measured: Sequence[Measured]) -> bool:
    """Return whether it depends on the reading which sentences hold."""
    verdicts: dict[Sentence, set[bool]] = {}
    for found in measured:
        verdicts.setdefault(found.sentence, set()).add(found.holds)
    return any(len(found) > 1 for found in verdicts.values())


def legend(readings: Sequence[Reading]) -> list[str]:
    """Return what every reading stands for, as rows of a table."""
    return [f"| `{reading.name}` | {reading.says} |" for reading in readings]


def count(measured: Sequence[Measured]) -> dict[str, tuple[int, int]]:
    """Return how many sentences hold under each reading, and how many there are."""
    found: dict[str, tuple[int, int]] = {}
    for one in measured:
        held, whole = found.get(one.reading.name, (0, 0))
        found[one.reading.name] = (held + one.holds, whole + 1)
    return found
