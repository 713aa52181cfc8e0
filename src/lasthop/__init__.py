"""Push and messaging for devices that come and go.

A gateway that stands between services and devices on flaky, metered links, and decides for every
message what deserves to be sent, when, and over which link.
"""

__version__ = "0.1.0"
