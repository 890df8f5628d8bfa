"""Ops that raise under torch.use_deterministic_algorithms: their names in the shipped libraries, and documentation."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tfdet.audit.call_arguments import find_calls
from tfdet.base.errors import DataError
from tfdet.base.paths import Project
from tfdet.matrix import alerts
from tfdet.matrix.alerts import Alert, Alerts, Meaning
from tfdet.matrix.ops import DocumentedEntry, find_faults, load_ops
from tfdet.publish.refusals import disagreements, refusals_text

FUNCTION = "Context21alertNotDeterministic"

PROGRAM = r"""
struct View { unsigned long size; const char *text; };
struct Context { static void alertNotDeterministic(View const &); static void other(View const &); };
extern const char *elsewhere;
static unsigned long counted(const char *text) { const char *end = text; while (*end) ++end; return end - text; }
void index_reduce(int *x) { *x = 17; Context::alertNotDeterministic(View{17, "index_reduce_cuda"}); *x = 1; }
void again(int *x) { Context::alertNotDeterministic(View{17, "index_reduce_cuda"}); *x = 2; }
void last() { View view{9, "_histc_cu"}; Context::alertNotDeterministic(view); asm volatile("" ::: "memory"); }
void kthvalue(int *x) {
  const char *text = "kthvalue CUDA";
  asm("" : "+r"(text));
  Context::alertNotDeterministic(View{counted(text), text});
  *x = 3;
}
void of_another_function() { Context::other(View{12, "nobody_calls"}); asm volatile("" ::: "memory"); }
void not_a_constant(int *x) { Context::alertNotDeterministic(View{3, elsewhere}); *x = 4; }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a compiled library whose functions call FUNCTION with texts in several ways."""
    compiler = shutil.which("g++")
    assert compiler, "the virtual GPU needs it, too"
    folder = tmp_path_factory.mktemp("library")
    (folder / "some.cpp").write_text(PROGRAM, "utf-8")
    flags = ["-O2", "-fPIC", "-shared", "-fno-builtin", "-fno-tree-loop-distribute-patterns"]
    subprocess.run([compiler, *flags, "-o", folder / "libsome.so", folder / "some.cpp"], check=True)
    return folder / "libsome.so"


def test_the_texts_of_calls_are_read_out_of_machine_code(library: Path) -> None:
    """A text's length is given or counted; a text that is not constant is unresolved."""
    calls = find_calls(library, FUNCTION.encode())
    assert calls.texts == {"index_reduce_cuda": 2, "_histc_cu": 1, "kthvalue CUDA": 1}
    assert calls.unresolved == 1
    assert find_calls(library, b"Context5other").texts == {"nobody_calls": 1}


def test_a_library_without_calls_has_no_texts(library: Path, tmp_path: Path) -> None:
    assert not find_calls(library, b"alertSomethingElse").texts
    (tmp_path / "some.so").write_bytes(b"no library" * 20)
    assert not find_calls(tmp_path / "some.so", FUNCTION.encode()).texts
    content = library.read_bytes()
    (tmp_path / "cut.so").write_bytes(content[: len(content) // 2])
    assert not find_calls(tmp_path / "cut.so", FUNCTION.encode()).texts


def test_every_build_with_a_list_of_ops_was_read_completely(checkout: Project) -> None:
    for environment in load_ops(checkout.matrix, "torch"):
        stored = alerts.load(checkout.matrix, environment)
        assert stored is not None, f"scripts/extract-determinism-alerts {environment}"
        assert stored.unresolved_calls == 0
        assert {Path(alert.library).name for alert in stored.alerts} == {"libtorch_cpu.so", "libtorch_cuda.so"}
        assert {"_bincount_cuda", "median CUDA with indices output"} <= stored.callers


def test_names_in_recorded_errors_were_read_from_the_build(checkout: Project) -> None:
    """Recorded error messages of these builds confirm the names that were read."""
    names_by_environment: dict[str, set[str]] = {}
    for path in sorted(checkout.evidence.glob("*/torch*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            record = json.loads(line)
            if record["observation"] == "raises":
                name = re.match(r"(.*?) does not have a deterministic implementation", record["error"]["message"])
                assert name, record["error"]["message"]
                names_by_environment.setdefault(path.stem, set()).add(name[1])
    assert len(names_by_environment["torch2.11"]) >= 20
    for environment, names in names_by_environment.items():
        stored = alerts.load(checkout.matrix, environment)
        assert stored is not None
        assert names <= stored.callers


RAISES = DocumentedEntry(api="torch.an_op", says="raises", devices=["gpu"], backward=False, modes=[])
DETERMINISTIC = RAISES.model_copy(update={"says": "deterministic"})
ON_CUDA = Meaning(callers=["an_op_cuda"], ops=["an-op"], apis=["torch.an_op"], devices=["gpu"], backward=True)


@pytest.mark.parametrize(
    ("documented", "refuses", "confirmed", "kinds"),
    [
        ([RAISES], [ON_CUDA], {"torch.an_op"}, []),
        ([], [], set(), []),
        ([], [ON_CUDA], {"torch.an_op"}, ["alert-unlisted"]),
        ([RAISES.model_copy(update={"devices": ["cpu"]})], [ON_CUDA], {"torch.an_op"}, ["alert-unlisted"]),
        ([DETERMINISTIC], [ON_CUDA], {"torch.an_op"}, ["alert-against"]),
        ([DETERMINISTIC, RAISES], [ON_CUDA], {"torch.an_op"}, []),
        ([RAISES], [], {"torch.other"}, ["alert-missing"]),
        ([DETERMINISTIC], [], set(), []),
    ],
)
def test_disagreements_of_alerts_and_documentation(
    documented: list[DocumentedEntry], refuses: list[Meaning], confirmed: set[str], kinds: list[str]
) -> None:
    """refuses: alerts in the code.  confirmed: APIs that an alert in the build confirms."""
    kinds_found = list(disagreements(documented, refuses, frozenset(confirmed)))
    assert [kind for kind, _ in kinds_found] == kinds
    assert all("an_op" in text for _, text in kinds_found)


def test_the_text_of_a_table_row() -> None:
    meaning = Meaning(callers=["put_"], ops=["put"], devices=["cpu", "gpu"])
    assert refusals_text([ON_CUDA, meaning]) == "`an_op_cuda` (CUDA, backward); `put_` (CPU, CUDA)"


def test_unknown_names_are_reported(whole_copy: Project) -> None:
    path = alerts.path_of(whole_copy.matrix, "torch2.14")
    path.write_text(path.read_text("utf-8").replace('"_bincount_cuda"', '"a_new_kernel"'), "utf-8")
    listed = whole_copy.matrix / "ops" / "torch" / "alerts.toml"
    listed.write_text(listed.read_text("utf-8").replace('ops = ["histc"]', 'ops = ["histic"]'), "utf-8")
    text = "\n".join(find_faults(whole_copy.matrix))
    assert "alerts.toml: torch2.14 raises 'a_new_kernel', which no [[alerts]] entry lists" in text
    assert "alerts.toml: no op histic" in text


def test_the_stored_file_is_read_back_as_it_was(checkout: Project, tmp_path: Path) -> None:
    path = alerts.path_of(checkout.matrix, "torch2.14")
    known = alerts.load(checkout.matrix, "torch2.14")
    assert known is not None
    head = {"wheel": known.wheel.model_dump(), "unresolved_calls": known.unresolved_calls}
    assert alerts.to_json(head, known.alerts) == path.read_text("utf-8")
    assert alerts.load(tmp_path, "torch2.14") is None
    (tmp_path / "alerts").mkdir()
    alerts.path_of(tmp_path, "torch2.14").write_text("{}", "utf-8")
    with pytest.raises(DataError) as caught:
        alerts.load(tmp_path, "torch2.14")
    assert "scripts/extract-determinism-alerts torch2.14" in caught.value.advice


def test_only_alerts_of_the_build_are_selected() -> None:
    meanings = alerts.Meanings(
        function="f", libraries="l", alerts=[ON_CUDA, ON_CUDA.model_copy(update={"callers": ["x", "y"]})]
    )
    alerts_in_build = Alerts(
        wheel=alerts.Wheel(file="w.whl", sha256="0" * 64),
        unresolved_calls=0,
        alerts=[Alert(library="l", caller="y", calls=1)],
    )
    assert [meaning.callers for meaning in alerts.meanings_in_build(meanings, alerts_in_build)] == [["y"]]
    assert alerts.meanings_in_build(meanings, None) == []
