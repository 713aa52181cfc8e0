"""The example of docs/xml-security.md works as it stands there."""

import re

from tests.places import DOCS


def test_the_example_works() -> None:
    page = (DOCS / "xml-security.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(code, "xml-security.md", "exec"), {})
