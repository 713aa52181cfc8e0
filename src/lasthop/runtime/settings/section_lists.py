"""The parts of the settings that are lists of sections, such as [[rules]]: any number of them, and
no variables."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from lasthop.core.rights.rule import Verb
from lasthop.runtime.settings.issuers import ISSUERS, IssuerSettings
from lasthop.runtime.settings.rights import RULES, RuleSettings

LISTED: Mapping[str, type[msgspec.Struct]] = {RULES: RuleSettings, ISSUERS: IssuerSettings}
"""The type of a section, for each part of the settings that is a list of sections."""

EXAMPLES: Mapping[str, msgspec.Struct] = {
    RULES: RuleSettings(
        name="news",
        who=("device:*",),
        allow=(Verb.SUBSCRIBE,),
        on=("topic:news.#", "topic:{user}.#"),
    ),
    ISSUERS: IssuerSettings(
        name="company", url="https://login.example.org", audience="https://push.example.org"
    ),
}
"""An example of a section for each of these parts, for the printed settings."""
