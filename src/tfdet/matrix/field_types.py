"""What fields under matrix/ are made of, and the strict model that all of them share."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import ErrorDetails

from tfdet.base.sanitize import escape_line
from tfdet.matrix import ranges

Text = Annotated[str, Field(min_length=1)]
Range = Annotated[str, AfterValidator(ranges.validate_range)]
Version = Annotated[Text, AfterValidator(ranges.validate_version)]
Device = Literal["cpu", "gpu"]


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from error
    return text


Pattern = Annotated[Text, AfterValidator(_pattern)]


class StrictModel(BaseModel):
    # What a command does not read costs it nothing: a model is built when it is first used.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


def format_validation_error(fault: ErrorDetails, whole: str = "") -> str:
    """One fault of content that a model refuses: where, and why.  whole: what it is called where all of it is wrong."""
    return f"{escape_line('.'.join(map(str, fault['loc']))) or whole}: {fault['msg']}"
