"""The data in matrix/ agree with the original documents, and the lock files with the data."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from tfdet.matrix.load import Matrix, load_matrix
from tfdet.matrix.plan import plan_cells

ROOT = Path(__file__).resolve().parents[3]
MATRIX = ROOT / "matrix"
LOCKS = ROOT / "docker" / "locks"

# The files of TensorFlow that tensorflow-determinism 0.3.0 names as possible sources of nondeterminism.
ORIGINAL_FILES = {
    "crop_and_resize_op_gpu.cu.cc",
    "scatter_functor_gpu.cu.h",
    "scatter_nd_op_gpu.cu.cc",
    "sparse_tensor_dense_matmul_op_gpu.cu.cc",
    "resize_nearest_neighbor_op_gpu.cu.cc",
    "segment_reduction_ops.h",
    "segment_reduction_ops_gpu.cu.cc",
    "dilation_ops_gpu.cu.cc",
    "maxpooling_op_gpu.cu.cc",
    "svd_op_gpu.cu.cc",
    "cuda_kernel_helper_test.cu.cc",
    "depthwise_conv_op_gpu.h",
    "resampler_ops_gpu.cu.cc",
    "histogram_op_gpu.cu.cc",
    "stateful_random_ops_gpu.cu.cc",
}

# The table of tensorflow-determinism 0.3.0: row, "NGC 19.06+ / TF 2.1", "TF 1.14, 1.15, 2.0".
# TCD: TF_CUDNN_DETERMINISTIC.  TDO: TF_DETERMINISTIC_OPS.  TDP: tfdeterminism.patch.  NS1: no solution.
ORIGINAL_TABLE = [
    ("TF auto-tuning of cuDNN convolution algorithms", "TCD TDO", "TCD TDP"),
    ("cuDNN convolution backprop to weight gradients", "TCD TDO", "TCD TDP"),
    ("cuDNN convolution backprop to data gradients", "TCD TDO", "TCD TDP"),
    ("cuDNN max-pooling backprop", "TCD TDO", "TCD TDP"),
    ("`tf.nn.bias_add` backprop (see XLA note)", "TDO", "TDP"),
    ("`tf.image.resize_bilinear` fwd and bwd", "NS1", "NS1"),
]
NEW_COLUMN = ["ngc19.06-py3", "ngc19.10-py3", "tf2.1"]
OLD_COLUMN = ["tf1.14", "tf1.15", "tf2.0"]
OUTCOME_OF_CODE = {"NS1": "no-solution"}


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return load_matrix(MATRIX)


def pip_built() -> dict[str, dict[str, str]]:
    """Return {environment: content of its TOML file} of the environments that pip installs."""
    files = {path.stem: tomllib.loads(path.read_text("utf-8")) for path in (MATRIX / "environments").rglob("*.toml")}
    return {key: content for key, content in files.items() if "pip" in content}


def test_every_file_of_the_matrix_is_valid(matrix: Matrix) -> None:
    for folder in ("environments", "sources", "solutions"):
        files = {path.stem for path in (MATRIX / folder).rglob("*.toml")}
        assert set(getattr(matrix.for_published_framework, folder)) <= files <= set(getattr(matrix, folder))
    assert set(matrix.environments) | set(matrix.solutions) == {
        path.stem for folder in ("environments", "solutions") for path in (MATRIX / folder).rglob("*.toml")
    }


def test_no_stock_minor_is_missing_between_the_first_and_the_newest(matrix: Matrix) -> None:
    """1.13 is the third last minor version of TensorFlow 1."""
    versions = [e.version for e in matrix.for_published_framework.environments.values() if e.line == "stock"]
    pairs = sorted({tuple(map(int, version.split("."))) for version in versions})
    newest = pairs[-1]
    assert pairs == [(1, 13), (1, 14), (1, 15), *((newest[0], minor) for minor in range(newest[1] + 1))]


def test_every_line_of_a_published_framework_has_environments(matrix: Matrix) -> None:
    for name, framework in matrix.frameworks.items():
        lines = {e.line for e in matrix.environments.values() if e.framework == name}
        assert lines == set(framework.lines) or not framework.published, name


def test_an_environment_is_named_after_its_version(matrix: Matrix) -> None:
    for key, environment in matrix.environments.items():
        stock = {"tensorflow": "tf"}.get(environment.framework, environment.framework)
        prefix = stock if environment.line == "stock" else "ngc"
        assert re.fullmatch(rf"{prefix}{re.escape(environment.version)}([.-].+)?", key)


def test_an_environment_for_a_package_runs_that_packages_sources_alone(matrix: Matrix) -> None:
    for key, environment in matrix.environments.items():
        for cell in plan_cells(matrix, key):
            package = matrix.source(cell.source).package
            assert cell.reason or package == environment.package, (key, cell.source)
            assert cell.expect is None or environment.is_for(package), (key, cell.source)
    horovod = [key for key, e in matrix.environments.items() if e.package == "horovod"]
    run = {key: [c.source for c in plan_cells(matrix, key) if c.device == "cpu" and not c.reason] for key in horovod}
    assert run and all(
        sources and {matrix.source(key).package for key in sources} == {"horovod"} for sources in run.values()
    )


def test_a_python_2_image_is_not_run(matrix: Matrix) -> None:
    python2 = {key for key, e in matrix.environments.items() if e.image.endswith("-py2")}
    assert python2 == {key for key, e in matrix.environments.items() if e.skip_reason and "Python 2" in e.skip_reason}
    assert python2


def test_parentheses_in_texts_are_balanced() -> None:
    for path in sorted(MATRIX.glob("*/*.toml")):
        for text in texts(tomllib.loads(path.read_text("utf-8"))):
            assert text.count("(") == text.count(")"), f"{path}: {text}"


def texts(value: object) -> list[str]:
    """Return all strings in a TOML document."""
    if isinstance(value, dict):
        return [text for child in value.values() for text in texts(child)]
    if isinstance(value, list):
        return [text for child in value for text in texts(child)]
    return [value] if isinstance(value, str) else []


def test_each_file_of_the_original_list_has_a_source(matrix: Matrix) -> None:
    possible = {s.upstream_row for s in matrix.sources.values() if s.group == "gpu-possible" and s.upstream_row}
    assert possible == ORIGINAL_FILES


def test_the_confirmed_sources_are_the_rows_of_the_original_table(matrix: Matrix) -> None:
    confirmed = sorted((s for s in matrix.sources.values() if s.group == "gpu-confirmed"), key=lambda s: s.order)
    assert [s.title for s in confirmed] == [row for row, _, _ in ORIGINAL_TABLE]
    assert [s.upstream_row for s in confirmed] == [row for row, _, _ in ORIGINAL_TABLE]


@pytest.mark.parametrize(
    ("row", "column", "keys"),
    [
        (row, column, keys)
        for row, new, old in ORIGINAL_TABLE
        for column, keys in ((NEW_COLUMN, new), (OLD_COLUMN, old))
    ],
)
def test_claims_of_confirmed_sources_equal_the_original_table(
    matrix: Matrix, row: str, column: list[str], keys: str
) -> None:
    source = next(s for s in matrix.sources.values() if s.upstream_row == row)
    for key in column:
        claims = [c for c in source.claims if c.device == "gpu" and c.covers(matrix.environment(key))]
        claimed = {(solution, claim.outcome) for claim in claims for solution in claim.solutions}
        assert claimed == {(solution, OUTCOME_OF_CODE.get(solution, "deterministic")) for solution in keys.split()}, key
        assert all("tensorflow-determinism 0.3.0, README" in claim.cite for claim in claims)


def test_cases_outside_of_a_claim_have_records(matrix: Matrix) -> None:
    named = {
        (key, case) for key, source in matrix.sources.items() for claim in source.claims for case in claim.except_cases
    }
    records = (json.loads(line) for path in MATRIX.glob("evidence/*/*.jsonl") for line in path.open())
    assert named and named <= {(record["source"], record["case"]) for record in records}


def test_orders_within_a_group_are_unique(matrix: Matrix) -> None:
    counts = Counter((s.group, s.order) for s in matrix.sources.values())
    assert [position for position, count in counts.items() if count > 1] == []


def test_the_wrong_variable_name_stands_only_where_it_is_corrected() -> None:
    for path in sorted(MATRIX.glob("*/*.toml")):
        content = tomllib.loads(path.read_text("utf-8"))
        notes = content.pop("notes", "")
        assert "TF_USE_CUDNN_AUTOTUNE" not in str(content), path
        assert "TF_USE_CUDNN_AUTOTUNE" not in notes or "reads `TF_CUDNN_USE_AUTOTUNE`" in notes, path


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("key", sorted(pip_built()))
def test_a_lock_pins_everything(key: str, device: str) -> None:
    environment = pip_built()[key]
    pip = environment["pip"]
    lines = (LOCKS / f"{key}-{device}.txt").read_text("utf-8").splitlines()
    title = re.sub("scripts/lock ", "scripts/update-locks ", lines[0])  # its former name: attestations hash these files
    assert title == f"# made by scripts/update-locks for {key} ({device}), CPython {pip['python']}"
    pins = parse_lock("\n".join(lines[1:]))
    name, version = re.fullmatch(r"([\w-]+)(?:\[.*\])?==(.+)", pip[device]).groups()
    assert pins[name] == version
    assert re.sub(r"(\.post\d+|\+cpu)$", "", version) == environment["framework_version"]
    assert "pytest" in pins


def test_every_lock_belongs_to_an_environment() -> None:
    expected = {f"{key}-{device}.txt" for key in pip_built() for device in ("cpu", "gpu")}
    assert {path.name for path in LOCKS.glob("*-[cg]pu.txt")} == expected


def parse_lock(lock: str) -> dict[str, str]:
    """Return {package: version}; raise for anything but a pin with hashes, such as an index, a path or an option."""
    pins = {}
    for entry in lock.replace(" \\\n", " ").splitlines():
        pin = re.fullmatch(r"([a-z0-9-]+)==([\w.+!]+)(?: ; [^-]+)?((?:\s+--hash=sha256:[0-9a-f]{64})+)", entry)
        assert pin, entry
        pins[pin.group(1)] = pin.group(2)
    return pins
