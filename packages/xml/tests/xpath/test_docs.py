"""The example of docs/xpath-routing.md works as it stands there."""

import re

from tests.places import DOCS


def test_the_example_works() -> None:
    page = (DOCS / "xpath-routing.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(code, "xpath-routing.md", "exec"), {})
