"""The debug tool's advice, generated from the matrix, and its version ranges."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet

from tfdeterminism.trace.causes import advice
from tfdeterminism.trace.faults import Fault
from tfdeterminism.trace.schema import format as trace_format

VERSIONS = ["1.13", "1.14", "1.15", "2.0", "2.1", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "2.10", "2.12", "2.21"]


def test_ranges_are_read_as_packaging_reads_them() -> None:
    content = advice._content()
    ranges = {c["stock"] for source in content["sources"].values() for c in source["claims"] if "stock" in c}
    assert len(ranges) > 10
    for text in ranges | {"<2.7", "!=2.0,>1.14"}:
        for version in VERSIONS:
            numbers = tuple(int(part) for part in version.split("."))
            assert advice.contains(text, numbers) == (version in SpecifierSet(text)), (text, version)


@pytest.mark.parametrize(
    ("op", "forward", "source"),
    [
        ("UnsortedSegmentSum", None, "unsorted-segment-sum"),
        ("UnsortedSegmentSum", "GatherV2", "gather-backprop"),
        ("Conv2DBackpropFilter", "Conv2D", "cudnn-conv-backprop-filter"),
        ("SegmentSum", None, "segment-sum"),
        ("BiasAddGrad", "BiasAdd", "bias-add-backprop"),
        ("MatMul", None, None),
    ],
)
def test_the_advice_for_an_op(op: str, forward: str | None, source: str | None) -> None:
    table = advice.AdviceTable({"framework": "tensorflow", "version": "2.21.0"})
    gradient = trace_format.definition(0, op, op, device="/device:GPU:0")
    made_by = forward and trace_format.definition(1, forward, forward)
    assert table.source(Fault.UNEXPLAINED, gradient, made_by, [], None) == source


def test_advice_for_pytorch_names_no_source_of_tensorflow() -> None:
    """No source of TensorFlow is named."""
    header = {"framework": "torch", "version": "2.13.0"}
    definition = trace_format.definition(0, "aten.index_add_.default", "x", device="cuda:0")
    table = advice.AdviceTable(header)
    assert table.source(Fault.UNEXPLAINED, definition, None, [], None) is None
    for fault in Fault:
        assert "tf." not in " ".join(table.advise(fault, None, "cuda:0").lines), fault
    assert "torch.use_deterministic_algorithms" in table.advise(Fault.UNEXPLAINED, None, "cuda:0").lines[-1]


def test_nvidias_images_have_their_own_version_ranges() -> None:
    stock = advice.AdviceTable({"framework": "tensorflow", "version": "2.1.0"})
    image = advice.AdviceTable(
        {"framework": "tensorflow", "version": "2.1.0", "environment": {"NVIDIA_TENSORFLOW_VERSION": "20.06-tf2"}}
    )
    bilinear = (Fault.KERNEL_RACE, "resize-bilinear-backprop", "/device:GPU:0")
    assert stock.advise(*bilinear).solution is None
    assert image.advise(*bilinear).solution == "TDO"  # TF_DETERMINISTIC_OPS=1
