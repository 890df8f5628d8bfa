"""Third-party files of the site are the published ones, and request nothing from elsewhere."""

from __future__ import annotations

import hashlib
import re
import sys
import threading
import urllib.request
from importlib.resources import files
from pathlib import Path

import pytest

from tfdet.base.errors import UsageError
from tfdet.site import plots
from tfdet.site.serve import server

FOLDER = files("tfdet.site") / "static"
# Of dist/ in the npm package tabulator-tables 6.5.3; whoever brings another version brings its hashes.
TABULATOR = {
    "tabulator.min.css": "405ae24218357d80df2a5f3addf138666d035f970dac4ebdb0265d0b5373efcb",
    "tabulator.min.js": "ffac518cb793c672a2f0522b7fc80bf862234d96bb1e581c8aaf7f48f130eafa",
    "LICENSE.txt": "191a2ee554684e1064c897b432f0e1bc6dfa714ca045d3f6ea2cf692cbd398b7",
}


def test_the_table_library_is_the_published_one() -> None:
    folder = FOLDER / "tabulator"
    digests = {item.name: hashlib.sha256(item.read_bytes()).hexdigest() for item in folder.iterdir()}
    assert digests.pop("README.txt")
    assert digests == TABULATOR


def test_our_scripts_are_few_and_write_no_markup() -> None:
    scripts = {item.name: item.read_text("utf-8") for item in FOLDER.iterdir() if item.name.endswith(".js")}
    assert set(scripts) == {"search.js", "site.js", "table.js"}
    for name, text in scripts.items():
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text), name
        assert not re.search(r"https?:|fetch\(|XMLHttpRequest|import\(", text), name
    assert sum(text.count("\n") for text in scripts.values()) < 400


def test_the_site_is_served_on_localhost_only(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("here")
    with server(tmp_path, 0) as running:
        threading.Thread(target=running.handle_request, daemon=True).start()
        assert running.server_address[0] == "127.0.0.1"
        with urllib.request.urlopen(f"http://127.0.0.1:{running.server_port}/index.html", timeout=10) as answer:
            assert answer.read() == b"here"


def test_without_the_plotting_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match="matplotlib"):
        plots.atomics([{"build": "tf2.0", "order_dependent": 1}])
