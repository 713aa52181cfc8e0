"""The examples of README.md work as they stand there, one after the other."""

import re

from tests.places import PACKAGE


def test_the_examples_work() -> None:
    examples = re.findall(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(), re.DOTALL)
    assert len(examples) == 8
    exec(compile("\n".join(examples), "README.md", "exec"), {})
