"""Where the tests find what is not theirs alone: pages and sample messages of the repository."""

from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parents[1]
REPOSITORY: Final = PACKAGE.parents[1]
DOCS: Final = REPOSITORY / "docs"
SAMPLES: Final = REPOSITORY / "bench/data/xml_events"
"""200 notifications and their schema."""
VECTORS: Final = PACKAGE / "vectors"
