"""The advice that the debug tool carries: generated from the matrix, its ranges read like everybody's."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet

from tfdeterminism.trace.causes import advice

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
def test_the_row_of_an_op(op: str, forward: str | None, source: str | None) -> None:
    assert advice.Book({"tensorflow": "2.21.0"}).source_of(op, forward) == source


def test_nvidias_images_have_their_own_ranges() -> None:
    stock = advice.Book({"tensorflow": "2.1.0"})
    image = advice.Book({"tensorflow": "2.1.0", "environment": {"NVIDIA_TENSORFLOW_VERSION": "20.06-tf2"}})
    bilinear = (advice.KERNEL, "resize-bilinear-backprop", "/device:GPU:0")
    assert stock.advise(*bilinear).solution is None
    assert image.advise(*bilinear).solution == "TDO"
