"""Which extra of the distribution installs a library, for messages about a missing one.

`pip install lasthop` is a device: everything else is an extra (pyproject.toml).
"""

from __future__ import annotations

from typing import Final

EXTRAS: Final = {
    "cryptography": "security",
    "google": "otel",
    "jwt": "oidc",
    "lasthop_xml": "xml",
    "matplotlib": "plots",
    "opentelemetry": "otel",
    "pandas": "pipeline",
    "pyarrow": "pipeline",
    "pyspark": "pipeline",
}
"""Import names of libraries and the extra that installs each; all others come with the gateway."""


def install_line(error: ModuleNotFoundError) -> str:
    """Return the command that installs the missing module of `error`."""
    library = (error.name or "").partition(".")[0]
    return f"pip install 'lasthop[{EXTRAS.get(library, 'gateway')}]'"
