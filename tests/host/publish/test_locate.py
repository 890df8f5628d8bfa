"""`tfdet locate`: its result on a terminal and as a page; untrusted text stays text.

It runs a program several times by the debug tool, `python -m tfdeterminism.trace`, which finds the op that differs
first (the culprit) and, by pinning what enters the program to one value, the cause.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from synthetic import write_trace
from typer.testing import CliRunner

from tfdet.base.errors import DataError, DeviceUnavailableError, ExitCode, InterruptedRunError, UsageError
from tfdet.base.paths import Project
from tfdet.cli.main import app
from tfdet.engines import locate
from tfdet.matrix.load import load_matrix
from tfdet.publish import locate_page, terminal_views

EVIL = "<script>alert(1)</script>"


@pytest.fixture
def traces(tmp_path: Path) -> list[str]:
    """Two traces that differ first at step 7, op 13."""
    paths = [tmp_path / name for name in ("a.tfdt", "b.tfdt")]
    for seed, path in enumerate(paths):
        write_trace(str(path), differs=[(7, 13)], seed=seed)
    return [str(path) for path in paths]


def locate_result(traces: list[str], **changes: Any) -> locate.LocateResult:
    """Return the result of comparing the traces, with other fields; culprit: other fields of the first culprit."""
    from tfdeterminism.trace.causes import trace_diff

    plain = trace_diff.compare(traces).as_json()
    plain["culprits"][0].update(changes.pop("culprit", {}))
    return locate.parse_result(json.dumps({**plain, **changes}).encode())


class Page(HTMLParser):
    """Collects the tags of a page, and what they load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [value or "" for name, value in attrs if name in ("src", "href", "action", "srcset", "data")]
        if tag not in ("meta", "rect", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("rect",):
            assert self.open.pop() == tag


def test_traces_are_compared_and_shown(traces: list[str], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    ran = CliRunner().invoke(app, ["locate", "--traces", *traces, "--html", str(page)])
    assert ran.exit_code == 1
    for words in ("MatMul (op13)", "unexplained", "step 7", "train.py:23"):
        assert words in ran.stdout
    text = page.read_text("utf-8")
    assert 'class="culprit"' in text
    assert "step 7: 37 of 50 records differ" in text


def test_the_page_is_valid_and_loads_nothing(traces: list[str]) -> None:
    text = locate_page.html(locate_result(traces))
    page = Page(text)
    assert (page.open, page.loads) == ([], [])
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert "http" not in text.replace("http-equiv", "")
    assert "default-src 'none'" in text


@pytest.mark.parametrize("field", ["op_type", "op_name", "file", "device", "advice", "layer", "function", "why"])
def test_untrusted_text_is_escaped(traces: list[str], field: str) -> None:
    culprit = {field: EVIL, "lines": [EVIL], "snippet": [[23, EVIL]], "stack": [[EVIL, 1, EVIL]]}
    located = locate_result(traces, culprit=culprit, notes=[EVIL], findings=[EVIL], verdict=EVIL)
    text = locate_page.html(located)
    assert EVIL not in text
    assert "&lt;script&gt;" in text
    assert Page(text).open == []


def test_equal_traces_have_no_first_difference(traces: list[str], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    ran = CliRunner().invoke(app, ["locate", "--traces", traces[0], traces[0], "--html", str(page), "--json"])
    assert (ran.exit_code, json.loads(ran.stdout)["result"]) == (0, "same")
    assert "The runs are the same." in page.read_text("utf-8")


def test_suspects_are_not_shown_as_culprits(traces: list[str]) -> None:
    """The probes mask the race, so the suspect was read from the graph."""
    hidden = locate_result(traces, masked_by_tracing=True, verdict="Your program differs, the probes hide it.")
    text = locate_page.html(hidden)
    assert "A suspect, read off the graph" in text
    assert "The culprit<" not in text
    assert hidden.headline == "Your program differs, the probes hide it."


def test_an_invalid_result_is_refused() -> None:
    for text in (b"", b"[]", b'{"result": "perhaps", "first_step": 1, "culprits": []}'):
        with pytest.raises(DataError, match="not the output of `trace locate --json`"):
            locate.parse_result(text)


def test_the_python_that_runs_the_program(checkout: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = load_matrix(checkout.matrix)
    (tmp_path / "train.py").write_text("")
    monkeypatch.chdir(tmp_path)
    assert locate.parse_request(matrix, ["tf2.21", "train.py", "--lr", "1"], None, "cpu", 5).environment == "tf2.21"
    request = locate.parse_request(matrix, ["train.py"], sys.executable, "cpu", 5)
    assert (request.environment, request.program) == (None, ("train.py",))
    for words, python, cause in (
        (["tf2.21"], None, "no program given"),
        (["absent.py"], None, "absent.py not found"),
        (["tf2.21", "train.py"], "python3", "--python cannot be combined with an environment"),
    ):
        with pytest.raises(UsageError, match=cause):
            locate.parse_request(matrix, words, python, "cpu", 5)


def test_on_the_virtual_gpu_each_run_has_another_schedule(
    checkout: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any Python gets the device's libraries, and the names of the variables to vary."""
    python = tmp_path / "python"
    python.write_text(f"""#!{sys.executable}
import json, os, sys
told = [os.environ["LD_LIBRARY_PATH"].split(":")[0], os.environ["VGPU_SCHEDULE"], " ".join(sys.argv[1:])]
print(json.dumps({{"result": "same", "first_step": None, "culprits": [], "notes": told}}))
""")
    python.chmod(0o755)
    monkeypatch.setattr(locate.vgpu, "library_folder", lambda project: tmp_path)
    environ = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    calls = []

    def record_call(library: Path, schedule: str, cpu_fallbacks: bool) -> dict[str, str]:
        calls.append(cpu_fallbacks)
        return {**environ, "VGPU_SCHEDULE": schedule}

    monkeypatch.setattr(locate.vgpu, "environ", record_call)
    matrix = load_matrix(checkout.matrix)
    request = locate.parse_request(matrix, ["program"], str(python), "vgpu", 5, cpu_fallbacks=True)
    folder, schedule, words = locate.locate(checkout, matrix, request).notes
    assert (folder, schedule, calls) == (str(tmp_path), "serial", [True])
    assert "--vary-env VGPU_SCHEDULE=serial,reverse,random:1," in words
    assert words.endswith("-- program")
    with pytest.raises(UsageError, match="--cpu-fallbacks requires --device vgpu"):
        locate.parse_request(matrix, ["program"], str(python), "cpu", 5, cpu_fallbacks=True)


def test_advice_that_is_tried_has_an_exit_code_of_its_own(
    checkout: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The debug tool is called with --fix, and its exit code 5 is a success."""
    runs = {"runs": 2, "identical": 2, "distinct": 1, "seconds": [1.0, 1.0]}
    fix = {"result": "repeats", "applied": [], "ratio": None, "error": None, "with": runs, "without": runs,
           "lines": ["with it the program repeats itself"]}  # fmt: skip
    output = json.dumps({"result": "diverged", "first_step": 0, "culprits": [], "fix": fix})
    python = tmp_path / "python"
    python.write_text(f"#!{sys.executable}\nimport sys\nassert '--fix' in sys.argv\nprint({output!r})\nsys.exit(5)\n")
    python.chmod(0o755)
    (tmp_path / "train.py").write_text("")
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(app, ["locate", "--fix", "--python", str(python), "--", "train.py"])
    assert ran.exit_code == 5, ran.output
    assert "with it the program repeats itself" in ran.stdout


def test_a_program_that_did_not_use_the_virtual_gpu_has_the_code_of_a_missing_device(
    checkout: Project, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!{sys.executable}\nimport sys\nsys.exit(4)\n")
    python.chmod(0o755)
    (tmp_path / "train.py").write_text("")
    with pytest.raises(DeviceUnavailableError):
        locate.locate(
            checkout,
            load_matrix(checkout.matrix),
            locate.LocateRequest((str(tmp_path / "train.py"),), None, str(python)),
        )


def test_a_search_that_is_stopped_promises_nothing(checkout: Project, tmp_path: Path) -> None:
    """A search keeps no records."""
    python = tmp_path / "python"
    python.write_text(f"#!{sys.executable}\nimport sys\nsys.exit({ExitCode.INTERRUPTED})\n")
    python.chmod(0o755)
    (tmp_path / "train.py").write_text("")
    request = locate.LocateRequest((str(tmp_path / "train.py"),), None, str(python))
    with pytest.raises(InterruptedRunError) as error:
        locate.locate(checkout, load_matrix(checkout.matrix), request)
    assert error.value.advice == "Nothing is kept of a search; running again begins anew."


@pytest.mark.parametrize(("text", "name", "example"), [
    ("import torch", "PyTorch", "torch2."), ("import os, torch.nn as nn", "PyTorch", "torch2."),
    ("from tensorflow import keras", "TensorFlow", "tf2.21"), ("import sys", "your framework", "ENV"),
])  # fmt: skip
def test_tfdets_own_python_is_refused(
    checkout: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, name: str, example: str
) -> None:
    """The advice depends on the packages that the program imports."""
    (tmp_path / "train.py").write_text(f"{text}\n")
    (tmp_path / "python").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="is tfdet's own") as error:
        locate.locate(checkout, load_matrix(checkout.matrix), locate.LocateRequest((str(tmp_path / "train.py"),)))
    assert name in error.value.cause
    assert f"tfdet locate {example}" in error.value.advice


@pytest.mark.skipif(not shutil.which("chromium"), reason="no Chromium here to look at the page")
def test_a_browser_shows_it(traces: list[str], tmp_path: Path) -> None:
    """The culprit's row is visible, and nothing is wider than the page."""
    page = tmp_path / "report.html"
    probe = (
        "<script>document.title = document.querySelector('li.culprit').getBoundingClientRect().height > 20"
        " && document.documentElement.scrollWidth <= window.innerWidth ? 'drawn' : 'broken'</script>"
    )
    text = locate_page.html(locate_result(traces)).replace("default-src 'none'", "script-src 'unsafe-inline'")
    page.write_text(text.replace("</body>", probe + "</body>"), "utf-8")
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    ran = subprocess.run([*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120)
    assert "<title>drawn</title>" in ran.stdout, ran.stderr[-500:]


# A cause, and the search for causes, as the JSON of the debug tool has them.
CAUSE: dict[str, Any] = {
    "kind": "listing", "words": "the order in which the file system lists a folder", "first_run_only": False,
    "places": [{"file": "data.py", "line": 7, "what": "listdir", "text": f"x = os.listdir({EVIL!r})", "path": None}],
    "proof": {"pinned": ["listing"], "runs": 3, "equal": 3, "pinned_calls": 1, "runs_at_places": 3,
              "equal_at_places": 3},
    "fix": {"words": "sort the listing", "diff": ["+names = sorted(os.listdir(folder))"], "result": "holds", "runs": 3},
}  # fmt: skip
INTERVENTIONS: dict[str, Any] = {
    "verdict": "proven", "compared": "final weights", "runs": 3, "distinct": 3, "tried": ["random pinned: differs"],
    "latent": [], "varied": [], "why": None, "total_runs": 9,
}  # fmt: skip


def test_a_proven_cause_is_shown_first(traces: list[str], tmp_path: Path) -> None:
    lines = ["Cause:   listing", "Place:   data.py:7"]
    located = locate_result(traces, causes=[CAUSE], interventions=INTERVENTIONS, report=lines)
    page = tmp_path / "report.html"
    locate_page.write_html(located, page)
    text = page.read_text("utf-8")
    assert Page(text).loads == []
    assert EVIL not in text
    for words in ("data.py:7", "sorted(os.listdir(folder))", "tried: all 3 runs agree", "Where it enters the tensors"):
        assert words in text
    assert "What to change" not in text
    assert [str(part) for part in terminal_views.cause_report(located)] == lines


def test_a_cause_with_an_unknown_result_is_refused(traces: list[str]) -> None:
    broken = {**CAUSE, "fix": {**CAUSE["fix"], "result": "surely"}}
    with pytest.raises(DataError):
        locate_result(traces, causes=[broken], interventions=INTERVENTIONS)
