"""Types of fields in files of matrix/, and the strict model on which all models of these files are based."""

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


def _validate_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from error
    return text


Pattern = Annotated[Text, AfterValidator(_validate_pattern)]


class StrictModel(BaseModel):
    # Without defer_build, every command would build all models when it starts.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


def format_validation_error(fault: ErrorDetails, whole: str = "") -> str:
    """Format one error of pydantic as "location: reason".  whole: the location of an error in the whole content."""
    return f"{escape_line('.'.join(map(str, fault['loc']))) or whole}: {fault['msg']}"
