"""Compare the results of the virtual GPU's `mma` instruction, bit by bit, with a published model of tensor cores.

    P="uv run --no-project --with mmasim==2.1.1 --with torch==2.13.0 --with numpy --with pytest python"
    $P benchmarks/tensor_cores.py [--record]

The model is MMA-Sim (P. Xie et al., 2025), whose authors compared it with GPUs. The model of Ampere and Hopper, and the
virtual GPU at 8.0 and 9.0, multiply the same random matrices. Promised: no bit differs. Exit code 1 otherwise.
--record: write sums over the model's results to tests/vgpu/tensor_cores.json, so that the tests need no model.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from mmasim.nv_ptx.sim import MMA

TESTS = Path(__file__).resolve().parent.parent / "tests" / "vgpu"
sys.path[:0] = [str(TESTS)]
import matrix_products  # noqa: E402
from test_tensor_cores import ARCHITECTURES, checksum, record_key  # noqa: E402
from virtual_device import Device, build  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the sums that the tests use")
    options = parser.parse_args()
    torch.set_num_threads(1)
    device, differing, elements, sums = Device(build()), 0, 0, {}
    for capability, architecture in ARCHITECTURES.items():
        for shape in matrix_products.SHAPES:
            expected = model_result(MMA(architecture, shape.name), shape)
            sums[record_key(capability, shape)] = checksum(expected)
            differing += int((matrix_products.products(device, capability, shape) != expected).sum())
            elements += expected.size
    if options.record:
        recorded = {"model": f"mmasim {version('mmasim')}", "sums": sums}
        (TESTS / "tensor_cores.json").write_text(json.dumps(recorded, indent=1) + "\n", "utf-8")
    print(f"{elements - differing:,} of {elements:,} elements have the model's bits")
    return int(differing > 0)


def model_result(model: MMA, shape: matrix_products.Shape) -> np.ndarray:
    """Return the bits of the result D of the model, of shape [warp, 16, 8]."""
    a, b, c = matrix_products.matrices(shape, *matrix_products.operands(shape))
    types = (shape.element, shape.element, shape.sum)
    results = [model(*map(tensor, matrices, types)) for matrices in zip(a, b, c, strict=True)]
    bits = torch.stack(results).view(torch.int16 if shape.sum == "f16" else torch.int32).numpy()
    return bits.view(c.dtype)


def tensor(bits: np.ndarray, type: str) -> torch.Tensor:
    contiguous = np.ascontiguousarray(bits)
    if type == "bf16":
        return torch.from_numpy(contiguous.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(contiguous.view(np.float16 if type == "f16" else np.float32))


if __name__ == "__main__":
    sys.exit(main())
