from __future__ import annotations

from tests.words.conftest import Grow
from tests.words.docstrings import short_docstrings


def test_docstrings_of_five_words_are_short_wherever_they_stand(grow: Grow) -> None:
    tree = grow(
        {
            "a.py": '''
                """A module."""

                LIMIT = 3
                """Of one device."""

                class Lease:
                    """The right to something until a time."""

                    held: bool
                    """Whether it is."""

                    def __init__(self):
                        self.until = 0
                        """When it ends."""

                    def release(self):
                        """It has."""

                    def renew(self):
                        """Hold the lease for longer, from now on."""

                async def find():
                    """And no longer; false
                    otherwise."""
            '''
        }
    )
    count, findings = short_docstrings(tree)
    assert count == 6
    assert [str(finding).removeprefix("src/lasthop/") for finding in findings] == [
        "a.py:1: lasthop.a: 'A module.'",
        "a.py:5: LIMIT: 'Of one device.'",
        "a.py:11: Lease.held: 'Whether it is.'",
        "a.py:15: Lease.until: 'When it ends.'",
        "a.py:17: Lease.release: 'It has.'",
        "a.py:23: find: 'And no longer; false otherwise.'",
    ]


def test_what_is_private_or_says_nothing_is_not_short(grow: Grow) -> None:
    tree = grow(
        {
            "_a.py": '"""Private."""\ndef f():\n    """So is this."""',
            "b.py": '''
                _X = 3
                """It is."""

                class _Own:
                    """It is."""

                    def f(self):
                        """It is."""

                class Lease:
                    def _f(self):
                        """It is."""

                    def g(self):
                        """Release the lease of this device."""
                        def inner():
                            """It is."""

                def silent(): ...
            ''',
        }
    )
    assert short_docstrings(tree) == (0, [])
