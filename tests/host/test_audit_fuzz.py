"""Damaged libraries: 10,000 mutations, and never a crash, a hang, or memory without bound."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MUTATIONS = 10_000
MEMORY = 2 << 30  # bytes of address space for Python, NumPy and all that the scanner asks for
HANG_SECONDS = 900  # far beyond what the slowest machine needs for all mutations

CHILD = r"""
import json, random, resource, struct, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from audit_files import ELF, LZ4, PTX, ZSTD, cubin, element, fatbin, library
from tfdet.audit.scan import scan_library

resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[4]),) * 2)
path = Path(sys.argv[2]) / "lib.so"
text = b'''.version 8.4
.target sm_70
.visible .entry k(.param .u64 p) { .reg .b32 %r<9>; .reg .b64 %a<3>; .reg .f32 %f<3>;
L: mov.b32 %f1, %r1; add.f32 %f2, %f1, %f1; mov.b32 %r2, %f2;
atom.global.cas.b32 %r3, [%a1], %r1, %r2; mov.u32 %r1, %r3; @%p1 bra L; red.global.add.f32 [%a1], %f1; ret; }
'''
seeds = [
    library(fatbin(element(ELF, 70, cubin(70)))),
    library(fatbin(element(ELF, 90, cubin(90), LZ4), element(PTX, 70, text, ZSTD))),
    library(fatbin(element(PTX, 70, text, LZ4)) + fatbin(element(PTX, 70, text))),
    library(fatbin(element(PTX, 80, text)) * 3),
]
LARGE = [0, 1, 7, 0x7FFFFFFF, 0xFFFFFFFF, 2**31, 2**63, 2**64 - 1]
random = random.Random(20190622)
seen = {"faults": 0, "kernels": 0, "messages": set()}

def mutated(data):
    data = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 5, 40))):
        at = random.randrange(random.choice((len(data), min(len(data), 400))))
        how = random.randrange(6)
        if how == 0:
            data[at] ^= 1 << random.randrange(8)
        elif how == 1:
            data[at] = random.randrange(256)
        elif how == 2:
            del data[at : at + random.randrange(1, 64)]
        elif how == 3:
            data[at:at] = data[at : at + random.randrange(1, 64)]
        elif how == 4:
            data[at - at % 8 : at - at % 8 + 8] = struct.pack("<Q", random.choice(LARGE))
        else:
            data[-1 - at % min(len(data), 400)] ^= random.randrange(256)
        data = data or bytearray(1)
    if random.random() < 0.1:
        del data[random.randrange(len(data)) :]
    return bytes(data)

for number in range(int(sys.argv[3])):
    path.write_bytes(mutated(seeds[number % 4 if number % 8 else 0]))
    found = scan_library(path, "lib.so")
    seen["faults"] += bool(found.faults)
    seen["kernels"] += bool(found.kernels)
    seen["messages"] |= {fault.message.split(":")[0][:20] for fault in found.faults}
    size = path.stat().st_size
    assert all(isinstance(fault.offset, int) and fault.offset >= 0 for fault in found.faults), found.faults
seen["messages"] = len(seen["messages"])
print(json.dumps(seen))
"""


def test_no_damage_makes_the_scanner_fail(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CHILD, str(Path(__file__).parent), str(tmp_path), str(MUTATIONS), str(MEMORY)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout)
    # Mutations that hit nothing, or everything, would prove nothing.
    assert seen["faults"] > MUTATIONS // 10 and seen["kernels"] > MUTATIONS // 10 and seen["messages"] > 10, seen
