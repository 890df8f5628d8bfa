"""The Jinja environment of the Markdown templates."""

from __future__ import annotations

from collections.abc import Mapping

from jinja2 import DictLoader, Environment, StrictUndefined

from tfdet.base.sanitize import escape_hidden


def template_environment(sources: Mapping[str, str]) -> Environment:
    """Return an environment with the templates {name: text}, which shows hidden characters of all values."""
    return Environment(
        loader=DictLoader(dict(sources)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
        finalize=lambda value: escape_hidden(value) if isinstance(value, str) else value,
        keep_trailing_newline=True,
    )
