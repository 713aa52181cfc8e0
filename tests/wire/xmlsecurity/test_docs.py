"""The example of docs/xml-security.md works as it stands there."""

import re
from pathlib import Path


def test_the_example_works() -> None:
    page = (Path(__file__).parents[3] / "docs/xml-security.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(code, "xml-security.md", "exec"), {})
