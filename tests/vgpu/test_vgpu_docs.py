"""The programs of docs/how-to/use-the-virtual-gpu.md run as they are on the page."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from virtual_device import HEAD

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "use-the-virtual-gpu.md"
BLOCK = re.compile(r"^```python file=(\S+)\n(.*?)^```", re.M | re.S)
# The page's kernel as a compiler translates it; ORDERED replaces the atomic by a sum in fixed order.
ATOMIC = "atom.global.add.f32 %f2, [%rd4], %f1;"
SUM = f"""{HEAD}.visible .entry sum(.param .u64 sum_param_0, .param .u64 sum_param_1)
{{
  .reg .f32 %f<3>; .reg .b32 %r<5>; .reg .b64 %rd<7>; .reg .pred %p<3>;
  ld.param.u64 %rd1, [sum_param_0]; ld.param.u64 %rd2, [sum_param_1];
  cvta.to.global.u64 %rd3, %rd1; cvta.to.global.u64 %rd4, %rd2;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %rd5, %r4, 4; add.s64 %rd6, %rd3, %rd5; ld.global.f32 %f1, [%rd6];
  {ATOMIC}
  ret;
}}
"""
# One thread adds all numbers.
ORDERED = """setp.ne.u32 %p1, %r4, 0; @%p1 ret; mov.f32 %f2, 0f00000000;
again: ld.global.f32 %f1, [%rd6]; add.f32 %f2, %f2, %f1; add.s64 %rd6, %rd6, 4; add.u32 %r4, %r4, 1;
setp.lt.u32 %p2, %r4, 4096; @%p2 bra again; st.global.f32 [%rd4], %f2;"""


@pytest.mark.parametrize(("kernel", "said"), [(SUM, "nondeterministic"), (SUM.replace(ATOMIC, ORDERED), "one result")])
def test_the_pages_own_kernel_runs(device, tmp_path, kernel, said):
    programs = dict(BLOCK.findall(PAGE.read_text("utf-8")))
    (tmp_path / "sum.ptx").write_text(kernel)
    process = subprocess.run(
        [sys.executable, "-c", programs["sums.py"]],
        env={**os.environ, "LD_LIBRARY_PATH": str(Path(device.library).parent)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith(said)


def test_the_programs_are_short():
    """numba's program has at most ten lines besides imports."""
    programs = dict(BLOCK.findall(PAGE.read_text("utf-8")))
    lines = [line for line in programs["numba_sums.py"].splitlines() if line and "import" not in line]
    assert (len(lines) <= 10, set(programs)) == (True, {"sums.py", "numba_sums.py"})
