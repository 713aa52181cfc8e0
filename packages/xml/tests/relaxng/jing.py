"""jing, the reference validator of RELAX NG, asked about many schemas at once."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.installed import need

JAR = Path("/usr/share/java/jing.jar")
JUDGE = Path(__file__).with_name("Judge.java")


class Question(NamedTuple):
    """A schema, its other files, and documents."""

    schema: str
    documents: Sequence[str] = ()
    files: Mapping[str, str] = {}


class Answer(NamedTuple):
    """What jing says of a schema and its documents; None is no objection."""

    schema: str | None
    documents: list[str | None]


def ask(questions: Sequence[Question], folder: Path) -> list[Answer]:
    """All answers, in order. Documents of a schema that is none have none."""
    need("jing", "javac")
    for number, question in enumerate(questions):
        case = folder / f"{number:05}"
        for name, text in {"schema.rnc": question.schema, **question.files}.items():
            path = case / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        for place, document in enumerate(question.documents):
            (case / f"{place:03}.xml").write_text(document, encoding="utf-8", newline="")
    command = ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", str(JAR), str(JUDGE)]
    done = subprocess.run(
        [*command, str(folder)],
        check=True,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "JAVA_TOOL_OPTIONS": ""},
        timeout=110,
    )
    said: dict[str, str | None] = {}
    for line in done.stdout.splitlines():
        path_text, _, verdict = line.partition("\t")
        said[path_text] = None if verdict == "yes" else verdict
    answers = []
    for number, question in enumerate(questions):
        case = folder / f"{number:05}"
        schema = said[str(case / "schema.rnc")]
        count = 0 if schema is not None else len(question.documents)
        documents = [said[str(case / f"{place:03}.xml")] for place in range(count)]
        answers.append(Answer(schema, documents))
    return answers
