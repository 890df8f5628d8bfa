"""Damaged libraries never crash or hang the scanner, nor exhaust its memory: 2,000 mutations, 10,000 once a week."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import weekly

MUTATIONS = weekly.scale_count(10_000)
MEMORY = 2 << 30  # bytes of address space for Python, NumPy and all that the scanner asks for
HANG_SECONDS = 900  # far beyond what the slowest machine needs for all mutations

# argv: folder of the builders, work folder, number of mutations, bytes of address space.
CHILD = r"""
import json, random, resource, struct, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from library_builders import ELF, LZ4, PTX, ZSTD, cubin, element, fatbin, library
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
rng = random.Random(20190622)
seen = {"faults": 0, "kernels": 0, "messages": set()}

def mutated(data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 40))):
        at = rng.randrange(rng.choice((len(data), min(len(data), 400))))
        how = rng.randrange(6)
        if how == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            data[at] = rng.randrange(256)
        elif how == 2:
            del data[at : at + rng.randrange(1, 64)]
        elif how == 3:
            data[at:at] = data[at : at + rng.randrange(1, 64)]
        elif how == 4:
            data[at - at % 8 : at - at % 8 + 8] = struct.pack("<Q", rng.choice(LARGE))
        else:
            data[-1 - at % min(len(data), 400)] ^= rng.randrange(256)
        data = data or bytearray(1)
    if rng.random() < 0.1:
        del data[rng.randrange(len(data)) :]
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
    command = [sys.executable, "-c", CHILD, str(Path(__file__).parents[1]), str(tmp_path), str(MUTATIONS), str(MEMORY)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    # Mutations that hit nothing, or everything, would prove nothing.
    assert report["faults"] > MUTATIONS // 10 and report["kernels"] > MUTATIONS // 10 and report["messages"] > 10, (
        report
    )


# argv: folder of the builders, work folder, bytes of address space. Puts edge values into each field of each header.
FIELDS = r"""
import json, resource, struct, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import elf_builders as make
from library_builders import ELF, LZ4, PTX, ZSTD, element, fatbin, library
from tfdet.publish import audit_views as show
from tfdet.audit import serialize
from tfdet.verdicts.audit_findings import index_audit
from tfdet.audit.report import audit
from tfdet.audit.targets import Target

resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[3]),) * 2)
FILE = "<4sBBB9sHHIQQQIHHHHHH"
SECTION = "<IIQQQQIIQQ"
SYMBOL = "<IBBHQQ"
CONTAINER = "<IHHQ"
ELEMENT = "<HHIQIIHHIIIQQQ"

def widths(form):
    at = 0
    for letter in struct.Struct(form).format[1:].replace("4s", "I").replace("9s", "Q"):
        size = struct.calcsize("<" + letter)
        yield at, size
        at += size

def elf_headers(data, base):
    table, count = struct.unpack_from("<Q", data, base + 40)[0], struct.unpack_from("<H", data, base + 60)[0]
    yield "file", FILE, base
    rows = [base + table + 64 * row for row in range(count)]
    shown = {}
    for row in rows:
        kind, flags = struct.unpack_from("<IQ", data, row + 4)
        shown.setdefault((kind, flags), row)  # one of each sort
        if kind == 2:
            yield "symbol", SYMBOL, base + struct.unpack_from("<Q", data, row + 24)[0] + 24
    for row in shown.values():
        yield "section", SECTION, row

def headers(data):
    yield from elf_headers(data, 0)
    at = data.find(struct.pack("<I", 0xBA55ED50))
    while at >= 0:
        yield "container", CONTAINER, at
        inside, end = at + 16, at + 16 + struct.unpack_from("<Q", data, at + 8)[0]
        while inside < end:
            yield "element", ELEMENT, inside
            size, packed = struct.unpack_from("<QI", data, inside + 8)
            if not packed and data[inside + 64 : inside + 68] == b"\x7fELF":
                yield from elf_headers(data, inside + 64)
            inside += 64 + size
        at = data.find(struct.pack("<I", 0xBA55ED50), at + 4)

def values(old, bits, size):
    found = {old ^ 1 << bit for bit in range(min(bits, 8))} | {old - 1, old + 1, size, size - 1, size + 1}
    found |= {0, 1, 2, 3, 7, 9, 10, 99, 100, 255, 999, 1000}
    found |= {1 << bits - 1, (1 << bits) - 1, (1 << bits) - 16, (1 << bits - 1) - 1, 1 << bits // 2}
    return sorted(value for value in found if 0 <= value < 1 << bits and value != old)

def audit_and_show(path):
    target = Target("lib.so", {"lib.so": path}, was_named=True)
    found = audit(target, None, [])
    if (*found.sass, "", *found.ptx) not in shown:  # only these decide what is shown
        shown.add((*found.sass, "", *found.ptx))
        json.dumps(found.as_json())
        show.audit_tables(found, index_audit(serialize.to_stored(found)), {})
    return bool(found.faults)

shown = set()
path = Path(sys.argv[2]) / "lib.so"
small = make.cubin({make.CROP: [make.FLOAT_ADD, make.NOP]})
text = b".version 8.4\n.target sm_70\\n.visible .entry k(.param .u64 p) { red.global.add.f32 [%a1], %f1; ret; }\n"
elements = [element(PTX, 70, text, LZ4), element(ELF, 70, small), element(ELF, 90, small, ZSTD)]
data = library(fatbin(*elements[:2]) + fatbin(elements[2]))
seen = {"fields": 0, "values": 0, "faults": 0, "kinds": []}
for kind, form, base in headers(data):
    seen["kinds"] = sorted({*seen["kinds"], kind})
    for at, size in widths(form):
        seen["fields"] += 1
        old = int.from_bytes(data[base + at : base + at + size], "little")
        for value in values(old, 8 * size, len(data)):
            changed = bytearray(data)
            changed[base + at : base + at + size] = value.to_bytes(size, "little")
            path.write_bytes(changed)
            seen["values"] += 1
            try:
                seen["faults"] += audit_and_show(path)
            except Exception:
                print(kind, base, at, value, file=sys.stderr)
                raise
print(json.dumps(seen))
"""


def test_every_value_of_every_header_field_is_read_or_reported(tmp_path: Path) -> None:
    """Regression: an architecture below 10 caused a traceback."""
    command = [sys.executable, "-c", FIELDS, str(Path(__file__).parents[1]), str(tmp_path), str(MEMORY)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert report["kinds"] == ["container", "element", "file", "section", "symbol"]
    assert report["fields"] > 100 and report["values"] > 3000 and report["faults"] > 500, report
