"""What the page about links shows is what the code says.

About `docs/concepts/links.md`.
"""

from __future__ import annotations

import re
from doctest import DocTestParser, DocTestRunner
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "links.md"


def test_every_example_gives_the_number_that_is_printed() -> None:
    blocks = re.findall(r"```pycon\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 8
    examples = DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, str(PAGE), 0)
    report: list[str] = []
    result = DocTestRunner().run(examples, out=report.append)
    assert result.attempted > 30
    assert result.failed == 0, "".join(report)
