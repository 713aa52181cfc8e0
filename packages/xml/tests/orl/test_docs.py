"""The example of docs/orl.md works as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

from lasthop_xml.orl.generator import generate
from lasthop_xml.orl.parser import parse
from tests.places import DOCS, PACKAGE


def test_the_example_works(tmp_path: Path) -> None:
    page = (DOCS / "orl.md").read_text()
    (description,) = re.findall(r"```\n(# people.orl.*?)```", page, re.DOTALL)
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "people.py").write_text(generate(parse(description), source="people.orl"))
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{PACKAGE / 'src'}:{tmp_path}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
