"""Compare the virtual GPU's approximate instructions with those of a GPU, bit by bit, for all 32-bit arguments.

    python benchmarks/approximations.py [OP...] [--every N]

OP: a key of tests/vgpu/approximations.json, such as ex2.approx.ftz.f32; default: all 17.  That file has 256 sums of
results for each op, each over 2^24 arguments, which an NVIDIA H100 computed; this program computes them again.
--every N: only each Nth of the 256 sums.  Exit code 1 if a sum differs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "vgpu")]
from test_approximations import RECORDED, block_results, checksum  # noqa: E402
from virtual_device import Device, build  # noqa: E402

BLOCKS = 256  # blocks of 2^16 arguments in a sum


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", nargs="*", metavar="OP", choices=[[], *RECORDED["sums"]], help="default: all")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each Nth of the 256 sums")
    options = parser.parse_args()
    device, differing = Device(build()), 0
    for op in options.ops or RECORDED["sums"]:
        parts = range(0, 256, options.every)
        differing_parts = [part for part in parts if sum_of(device, op, part) != recorded(op, part)]
        differing += len(differing_parts)
        print(
            f"{op}: {len(parts) - len(differing_parts)} of {len(parts)} sums of 2^24 arguments are the card's",
            *differing_parts,
            flush=True,
        )
    return int(differing > 0)


def sum_of(device: Device, op: str, part: int) -> int:
    blocks = range(part * BLOCKS, (part + 1) * BLOCKS)
    return sum(checksum(block_results(device, op, block)) for block in blocks) & 0xFFFFFFFF


def recorded(op: str, part: int) -> int:
    return int(RECORDED["sums"][op][8 * part : 8 * part + 8], 16)


if __name__ == "__main__":
    sys.exit(main())
