"""A real browser for tests of HTML pages."""

from __future__ import annotations

import os
import shutil

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_browser = pytest.mark.skipif(
    not CHROMIUM and not os.environ.get("TFDET_REQUIRE_BROWSER"), reason="no Chromium here to look at the pages"
)
