"""`tfdet check`: which sources the calls of a program reach, in each framework."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from program_checks import certain_sources, matched_sources, parsed_program, possible_sources

from tfdet.verdicts.program_check import InstalledBuild, check_program
from tfdet.verdicts.status import Status

TORCH = "import torch, queue\nimport numpy as np\nimport torch.nn.functional as FF\nfrom torch import nn\n"
TENSORFLOW = "import tensorflow as tf\nimport tensorflow.compat.v1 as tf1\n"


@pytest.mark.parametrize(
    ("line", "source"),
    [
        ("torch.index_add(x, 0, y, x)", "index-add"),
        ("FF.nll_loss(x, y)", "nn-functional-nll-loss"),
        ("FF.softmax(x)", "softmax"),
        ("FF.relu_(x)", "nn-functional-relu"),
        ("torch.Tensor.index_add_(x, 0, y, x)", "index-add"),
        ("torch._scaled_mm(x, x)", "torch-scaled-mm"),
        ("nn.Conv2d(1, 1, 3)", "nn-functional-conv2d"),
        ("nn.CTCLoss()", "nn-functional-ctc-loss"),
        ("nn.MaxPool2d(2)", "nn-functional-max-pool2d"),
        ("nn.BatchNorm2d(3)", "nn-functional-batch-norm"),
        ("nn.CrossEntropyLoss()", "nn-functional-cross-entropy"),
        ("nn.BCELoss()", "nn-functional-binary-cross-entropy"),
        ("nn.ReflectionPad2d(1)", "nn-functional-pad-reflect"),
        ("nn.Upsample(None, 2, 'bilinear')", "nn-functional-interpolate-bilinear"),
        ("FF.interpolate(x, scale_factor=2)", "nn-functional-interpolate-nearest"),
        ("torch.scatter_reduce(x, 0, y, x, 'sum')", "scatter-reduce-sum"),
        ("torch.div(x, y, rounding_mode='floor')", "div-floor-rounding"),
    ],
)
def test_pytorch_ops_are_matched_by_each_of_their_names(status: Status, tmp_path: Path, line: str, source: str) -> None:
    sources = certain_sources(status.matrix, "torch", parsed_program(tmp_path, TORCH + line))
    assert sources == {f"torch-{source}"}


def test_a_variant_that_depends_on_unknown_arguments_is_possible(status: Status, tmp_path: Path) -> None:
    parsed = parsed_program(tmp_path, TORCH + "torch.addmm(x, y, z)")
    assert certain_sources(status.matrix, "torch", parsed) == {"torch-addmm"}
    assert possible_sources(status.matrix, "torch", parsed) == {"torch-addmm-decomposed"}
    parsed = parsed_program(tmp_path, TORCH + "FF.interpolate(x, mode=mode)")
    assert possible_sources(status.matrix, "torch", parsed) >= {
        "torch-nn-functional-interpolate-bilinear", "torch-nn-functional-interpolate-nearest",
    }  # fmt: skip


def test_a_method_of_an_object_of_unknown_type_is_possible(status: Status, tmp_path: Path) -> None:
    text = TORCH + "def f(x, y):\n  x.index_add_(0, y, x)\n  (x + y).cumsum(0)\n  x.scatter_reduce(0, y, x, 'sum')\n"
    parsed = parsed_program(tmp_path, text)
    assert certain_sources(status.matrix, "torch", parsed) == set()
    assert possible_sources(status.matrix, "torch", parsed) == {
        "torch-index-add",
        "torch-cumsum",
        "torch-scatter-reduce-sum",
    }


@pytest.mark.parametrize(
    "lines",
    [
        "np.zeros(3).cumsum(0)",
        "a = np.zeros(3)\nb = a[1:]\nb.cumsum(0)",
        "q = queue.Queue()\nq.put(1)",
        "class M:\n  def __init__(self):\n    self.q = queue.Queue()\n  def f(self):\n    self.q.put(1)",
        "' '.split()\n[1].index_add(2)",
    ],
)
def test_methods_of_objects_of_other_libraries_are_not_matched(status: Status, tmp_path: Path, lines: str) -> None:
    assert matched_sources(status.matrix, "torch", parsed_program(tmp_path, TORCH + lines)) == []


@pytest.mark.parametrize(
    "line", ["for a in x: pass", "[a for a in x]", "with x as a: pass", "def f(a): pass", "a, b = x"]
)
def test_a_reassigned_name_has_an_unknown_type(status: Status, tmp_path: Path, line: str) -> None:
    parsed = parsed_program(tmp_path, TORCH + f"a = np.zeros(3)\n{line}\na.cumsum(0)")
    assert possible_sources(status.matrix, "torch", parsed) == {"torch-cumsum"}


def test_an_object_after_many_assignments_has_an_unknown_type(status: Status, tmp_path: Path) -> None:
    lines = "a0 = np.zeros(3)\n" + "".join(f"a{i} = a{i - 1}.b\n" for i in range(1, 50))
    parsed = parsed_program(tmp_path, TORCH + lines + "a9.cumsum(0)\na49.cumsum(0)")
    assert [match.call.line for match in matched_sources(status.matrix, "torch", parsed)] == [56]


def test_methods_are_matched_only_where_the_framework_is_imported(status: Status, tmp_path: Path) -> None:
    assert matched_sources(status.matrix, "torch", parsed_program(tmp_path, "def f(x):\n  x.index_add_(0, 1, 2)")) == []


def test_jax_ops_are_matched(status: Status, tmp_path: Path) -> None:
    text = "import jax, jax.numpy as jnp\ndef f(x):\n  x.at[0].add(1)\n  jnp.cumsum(x)\n  jax.ops.segment_sum(x, x)\n"
    parsed = parsed_program(tmp_path, text + "  x.sum()\n  x.at[0].get()\n")
    assert certain_sources(status.matrix, "jax", parsed) == {"jax-scatter-add", "jax-cumsum", "jax-segment-sum"}
    assert possible_sources(status.matrix, "jax", parsed) == {"jax-reduce-sum"}


@pytest.mark.parametrize(
    ("line", "sources"),
    [
        ("tf1.unsorted_segment_sum(x, y, 1)", {"unsorted-segment-sum"}),
        ("tf.compat.v1.compat.v2.math.segment_sum(x, y)", {"segment-sum"}),
        ("tf1.scatter_sub(x, y, z)", {"scatter-ref-ops"}),
        ("tf.bincount(x)", {"bincount"}),
        ("tf.losses.softmax_cross_entropy(x, y)", {"softmax-xent"}),
        ("tf.losses.sparse_softmax_cross_entropy(x, y)", {"sparse-softmax-xent"}),
        ("tf.keras.losses.SparseCategoricalCrossentropy()", {"sparse-softmax-xent"}),
        ("tf.layers.max_pooling2d(x, 2, 2)", {"cudnn-max-pool-backprop"}),
        ("tf.nn.max_pool2d(x)", {"cudnn-max-pool-backprop"}),
        ("tf.keras.layers.MaxPooling3D()", {"cudnn-max-pool-backprop"}),
        ("tf.sparse_tensor_dense_matmul(x, y)", {"sparse-dense-matmul"}),
        ("tf.sparse.segment_mean(x)", {"sparse-segment-ops"}),
        ("tf.reduce_sum(x)", {"reduce-sum"}),
        ("tf.quantization.fake_quant_with_min_max_vars_per_channel(x)", {"fake-quant-min-max-vars-grad"}),
        ("tf.image.resize_images(x, [8, 8])", {"resize-bilinear-backprop"}),
        ("tf.raw_ops.UnsortedSegmentSum(data=x)", {"unsorted-segment-sum"}),
        ("tf.raw_ops.GatherV2(params=x)", {"gather-backprop"}),
    ],
)
def test_tensorflow_ops_are_matched_by_each_of_their_names(
    status: Status, tmp_path: Path, line: str, sources: set[str]
) -> None:
    assert certain_sources(status.matrix, "tensorflow", parsed_program(tmp_path, TENSORFLOW + line)) == sources


@pytest.mark.parametrize(
    "line",
    [
        "tf.random.set_seed(1)",
        "tf.random.normal([1], seed=1)",
        "tf.random.stateless_normal([1], [1, 2])",
        "tf.convert_to_tensor([1.0, 2.0])",
        "tf.image.resize(x, [8, 8], method='area')",
        "tf.image.resize(x, [8, 8], tf.image.ResizeMethod.AREA)",
        "tf.while_loop(c, b, [0], parallel_iterations=1)",
        "tf.keras.layers.UpSampling2D(interpolation='bicubic')",
    ],
)
def test_calls_that_do_not_reach_a_source_are_not_reported(status: Status, tmp_path: Path, line: str) -> None:
    assert matched_sources(status.matrix, "tensorflow", parsed_program(tmp_path, TENSORFLOW + line)) == []


@pytest.mark.parametrize(
    ("line", "certain", "open_to"),
    [
        ("tf.random.normal([1])", "random-op-without-seed", set()),
        ("tf.convert_to_tensor(tf.IndexedSlices(x, y))", "convert-to-tensor-indexed-slices", set()),
        ("tf.convert_to_tensor(x)", "", {"convert-to-tensor-indexed-slices"}),
        ("tf.image.resize(x, [8, 8])", "resize-bilinear-backprop", set()),
        ("tf.image.resize(x, [8, 8], method=m)", "", {"resize-bilinear-backprop", "resize-nearest-backprop"}),
        ("tf.image.resize(x, [8, 8], **more)", "", {"resize-bilinear-backprop", "resize-nearest-backprop"}),
        ("tf.keras.layers.UpSampling2D(interpolation='bilinear')", "resize-bilinear-backprop", set()),
        ("tf.keras.layers.UpSampling2D()", "resize-nearest-backprop", set()),
        ("tf.keras.layers.BatchNormalization()", "", {"fused-batch-norm-inference-backprop"}),
        ("x.map(f, num_parallel_calls=1)", "", {"dataset-map-graph-seed"}),
        ("x.map(f, tf.data.AUTOTUNE)", "", {"dataset-map-graph-seed", "tf-data-parallel-map"}),
    ],
)
def test_arguments_decide_which_source_is_reached(
    status: Status, tmp_path: Path, line: str, certain: str, open_to: set[str]
) -> None:
    parsed = parsed_program(tmp_path, TENSORFLOW + line)
    assert certain_sources(status.matrix, "tensorflow", parsed) == ({certain} if certain else set())
    assert possible_sources(status.matrix, "tensorflow", parsed) == open_to


def test_a_call_with_an_unknown_argument_is_a_warning(status: Status, tmp_path: Path) -> None:
    build = InstalledBuild("tensorflow", "2.21.0", "tf2.21", True)
    lines = "tf.image.resize(x, [8, 8])\ntf.image.resize(x, [8, 8], method=m)\n"
    findings = check_program(status, build, "gpu", parsed_program(tmp_path, TENSORFLOW + lines), set())
    assert [(finding.level, finding.source, [call.line for call in finding.calls]) for finding in findings] == [
        ("error", "resize-bilinear-backprop", [3]),
        ("warning", "resize-bilinear-backprop", [4]),
        ("warning", "resize-nearest-backprop", [4]),
    ]
    settled = check_program(status, build, "gpu", parsed_program(tmp_path, TENSORFLOW + lines), {"TEOD"})
    assert {finding.level for finding in settled} == {"note"}


def test_unknown_names_of_a_framework_are_reported(status: Status, tmp_path: Path) -> None:
    build = InstalledBuild("jax", "0.11.2", "jax0.11", True)
    (finding,) = check_program(
        status, build, "gpu", parsed_program(tmp_path, "import jax\njax.jit(f)\njax.grad(f)"), set()
    )
    assert finding.level == "warning" and "2 of 2 called names" in finding.text and "jax.jit, jax.grad" in finding.text
    (finding,) = check_program(status, build, "gpu", parsed_program(tmp_path, "import torch\ntorch.bmm(x, y)"), set())
    assert finding.level == "note" and "nothing of JAX" in finding.text
    text = "import torch\nimport os\nos.getcwd()\ntorch.use_deterministic_algorithms(False)"
    build = InstalledBuild("torch", "2.13.0", "torch2.13", True)
    assert check_program(status, build, "cpu", parsed_program(tmp_path, text), set()) == [], "a switch is no stranger"


@pytest.mark.parametrize(
    ("line", "sources"),
    [
        ("m.compile(loss='sparse_categorical_crossentropy')", {"sparse-softmax-xent"}),
        ("m.compile('adam', 'sparse_categorical_crossentropy')", {"sparse-softmax-xent"}),
        ("tf.keras.Sequential().compile(loss='sparse_categorical_crossentropy')", {"sparse-softmax-xent"}),
        ("m.compile(loss='mse')", set()),
        ("m.compile('sparse_categorical_crossentropy')", set()),
        ("m.fit(loss='sparse_categorical_crossentropy')", set()),
        ("m.compile(loss=loss)", set()),
    ],
)
def test_a_loss_named_by_a_string_is_matched(status: Status, tmp_path: Path, line: str, sources: set[str]) -> None:
    parsed = parsed_program(tmp_path, TENSORFLOW + line)
    assert certain_sources(status.matrix, "tensorflow", parsed) == sources


def test_a_loss_that_depends_on_its_arguments_is_possible(status: Status, tmp_path: Path) -> None:
    parsed = parsed_program(tmp_path, TENSORFLOW + "m.compile(loss='categorical_crossentropy')")
    assert possible_sources(status.matrix, "tensorflow", parsed) == {"softmax-xent"}


def test_getattr_with_a_literal_name_is_matched(status: Status, tmp_path: Path) -> None:
    parsed = parsed_program(
        tmp_path, TORCH + "layer = getattr(nn, 'LSTM')(3, 4)\ngetattr(nn, kind)(3)\ngetattr(x, 'Conv2d')(3)"
    )
    assert certain_sources(status.matrix, "torch", parsed) == {"torch-cudnn-rnn"}


@pytest.mark.parametrize(("device", "levels"), [("gpu", ["warning"]), ("cpu", [])])
def test_recurrent_layers_may_differ_on_a_gpu(
    status: Status, tmp_path: Path, device: Literal["cpu", "gpu"], levels: list[str]
) -> None:
    text = parsed_program(tmp_path, TORCH + "nn.LSTM(3, 4)\nnn.LSTMCell(3, 4)")
    findings = check_program(status, InstalledBuild("torch", "2.13.0", "torch2.13", True), device, text, set())
    assert [
        (finding.level, [call.line for call in finding.calls])
        for finding in findings
        if finding.source == "torch-cudnn-rnn"
    ] == [(level, [5]) for level in levels]
