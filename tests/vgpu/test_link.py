"""Modules joined by cuLink, calls through pointers, and the device functions that the driver provides.

LOAD reads the thread's value of the array p0 into %n, and STORE writes %r9 back in its place; SCRATCH declares
registers.
"""

import ctypes
import subprocess
import sys

import numpy as np
import pytest
from virtual_device import HEAD, LOAD, SCRATCH, STORE, kernel  # kernel: %i is the thread in the grid, %t in the block

# Orders of execution, as VGPU_SCHEDULE names them.
SCHEDULES = ["serial", "reverse", "random:5", "adversary:2"]
ASSERT, FILE_NOT_FOUND, INVALID_IMAGE, NO_BINARY = 710, 301, 200, 209
PTX_KIND = 1


def function(name, body, linkage=""):
    """Return the text of a function of one 32-bit number."""
    return f"""{linkage}.func (.param .b32 out) {name}(.param .b32 in)
{{ .reg .b32 %a, %b; ld.param.b32 %a, [in]; {body} st.param.b32 [out], %a; ret; }}
"""


def call_text(name):
    """Return a call that sets %r9 to the result of `name` for %n."""
    return f"""{{ .param .b32 a; .param .b32 b; st.param.b32 [a], %n;
    call.uni (b), {name}, (a); ld.param.b32 %r9, [b]; }}"""


class Link:
    """A linker (cuLink) that joins PTX texts to one image."""

    def __init__(self, cuda):
        self.cuda, self.state, self.log = cuda, ctypes.c_void_p(), ctypes.create_string_buffer(512)
        options = (ctypes.c_int * 2)(5, 6)  # the error log and its size
        values = (ctypes.c_void_p * 2)(ctypes.addressof(self.log), 512)
        assert cuda.cuLinkCreate_v2(2, options, values, ctypes.byref(self.state)) == 0

    def add(self, text):
        """Add a PTX text; return the status."""
        data = text.encode() + b"\0"
        return self.cuda.cuLinkAddData_v2(self.state, PTX_KIND, data, ctypes.c_size_t(len(data)), b"x", 0, None, None)

    def complete(self):
        """Complete the link; return the status and the image."""
        image, size = ctypes.c_char_p(), ctypes.c_size_t()
        result = self.cuda.cuLinkComplete(self.state, ctypes.byref(image), ctypes.byref(size))
        text = "" if result else image.value.decode()
        assert result or size.value == len(text) + 1
        self.cuda.cuLinkDestroy(self.state)
        return result, text


def link_texts(device, *texts):
    """Link the texts; return the result and the image."""
    link = Link(device.cuda)
    assert [link.add(text) for text in texts] == [0] * len(texts)
    return link.complete()


def test_a_function_and_a_variable_of_another_module(device):
    theirs = (
        HEAD + ".visible .global .u32 step = 5;\n" + function("more", "ld.global.u32 %b, [step]; add.u32 %a, %a, %b;")
    )
    theirs = theirs.replace(".func", ".visible .func")
    head = ".extern .global .u32 step;\n.extern .func (.param .b32 out) more(.param .b32 in);\n"
    body = LOAD + call_text("more") + "ld.global.u32 %r1, [step]; mad.lo.u32 %r9, %r1, 100, %r9;" + STORE
    for texts in ([kernel(body, ["p0"], head=head), theirs], [theirs, kernel(body, ["p0"], head=head)]):
        result, text = link_texts(device, *texts)
        assert result == 0
        code, (values,) = device.run(text, [np.arange(32, dtype=np.uint32)])
        assert (code, values.tolist()) == (0, [k + 505 for k in range(32)])


def test_names_that_only_their_own_modules_see_stay_apart(device):
    """Each module's function uses the module's own variable and helper of the same name, as `static` ones in C."""

    def module(number):
        return (
            HEAD
            + f".global .u32 step = {number};\n"
            + function("helper", "ld.global.u32 %b, [step]; add.u32 %a, %a, %b;")
            + f""".visible .func (.param .b32 out) more{number}(.param .b32 in)
            {{ .reg .b32 %n, %r9; ld.param.b32 %n, [in]; {call_text("helper")} st.param.b32 [out], %r9; ret; }}
            """
        )

    head = "".join(f".extern .func (.param .b32 out) more{k}(.param .b32 in);\n" for k in (10, 200))
    body = LOAD + call_text("more10") + "mov.u32 %n, %r9;" + call_text("more200") + STORE
    result, text = link_texts(device, module(10), kernel(body, ["p0"], head=head), module(200))
    assert result == 0
    code, (values,) = device.run(text, [np.arange(32, dtype=np.uint32)])
    assert (code, values.tolist()) == (0, [k + 210 for k in range(32)])


def test_the_definition_that_is_not_weak_is_taken(device):
    weak = HEAD + function("more", "add.u32 %a, %a, 1;", ".weak ")
    strong = HEAD + function("more", "add.u32 %a, %a, 7;", ".visible ")
    main = kernel(
        LOAD + call_text("more") + STORE, ["p0"], head=".extern .func (.param .b32 out) more(.param .b32 in);\n"
    )
    for texts in ([weak, strong, main], [strong, weak, main], [weak, main, strong, weak]):
        code, (values,) = device.run(link_texts(device, *texts)[1], [np.arange(32, dtype=np.uint32)])
        assert (code, values.tolist()) == (0, [k + 7 for k in range(32)])


def test_what_cannot_be_joined_is_said(device):
    text = HEAD + function("more", "add.u32 %a, %a, 1;", ".visible ")
    link = Link(device.cuda)
    assert [link.add(text), link.add(text)] == [0, 0]
    assert (link.complete()[0], b"two modules define more" in link.log.value) == (NO_BINARY, True)
    link = Link(device.cuda)
    assert link.add("no PTX at all") == INVALID_IMAGE
    assert device.cuda.cuLinkAddFile_v2(link.state, 1, b"/nowhere/x.ptx", 0, None, None) == FILE_NOT_FOUND
    assert link.complete()[0] != 0


PROTOTYPE = "prototype: .callprototype (.param .b32 _) _ (.param .b32 _);"
TARGETS = "prototype: .calltargets one, two;"


@pytest.mark.parametrize(("declared", "table"), [(PROTOTYPE, True), (TARGETS, False)])
def test_calls_through_pointers(launch, declared, table):
    """Lanes of a warp call different functions, whose addresses are in registers or in a table.

    The fixture `launch` runs the body under each schedule.
    """
    head = function("one", "add.u32 %a, %a, 1000;") + function("two", "mul.lo.u32 %a, %a, 3;")
    head += ".global .align 8 .u64 table[2] = {one, two};\n"
    take = "mov.u64 %l2, one; mov.u64 %l3, two; selp.b64 %l4, %l3, %l2, %p0;"
    look = "mov.u64 %l2, table; mul.wide.u32 %l3, %r1, 8; add.u64 %l2, %l2, %l3; ld.global.u64 %l4, [%l2];"
    body = f"""{LOAD} and.b32 %r1, %n, 1; setp.ne.u32 %p0, %r1, 0; {look if table else take}
    {{ .param .b32 a; .param .b32 b; st.param.b32 [a], %n; {declared}
    call (b), %l4, (a), prototype; ld.param.b32 %r9, [b]; }} {STORE}"""
    assert launch(body, range(64), head=head) == [3 * k if k & 1 else k + 1000 for k in range(64)]


def test_a_pointer_to_nothing_is_a_fault(device):
    body = f"""mov.u64 %l4, 4096; {{ .param .b32 a; .param .b32 b; {PROTOTYPE} call (b), %l4, (a), prototype; }}"""
    code, _, stderr = device.run_in_child(kernel(body, ["p0"]), [np.zeros(4, np.uint32)])
    assert (code != 0, "outside" in stderr) == (True, True)


PRINTING = f"""{HEAD}
.extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 arguments);
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
.global .align 1 .b8 format[40] = {{{", ".join(str(ord(c)) for c in "%d|%5.2f|%s|%llx|%c|%%|%3u" + chr(10))}}};
.global .align 1 .b8 word[6] = {{104, 101, 108, 108, 111, 0}};
.visible .entry k(.param .b64 p0) {{ {SCRATCH} .local .align 8 .b8 given[48]; .reg .f64 %d;
cvta.local.u64 %l1, %l0; mov.u64 %l0, given; cvta.local.u64 %l0, %l0;
mov.u32 %r0, %tid.x; neg.s32 %r1, %r0; st.u32 [%l0], %r1; cvt.rn.f64.u32 %d, %r0; st.f64 [%l0+8], %d;
mov.u64 %l2, word; cvta.global.u64 %l2, %l2; st.u64 [%l0+16], %l2; mov.u64 %l3, 0x123456789abcdef; st.u64 [%l0+24], %l3;
st.u32 [%l0+32], 65; st.u32 [%l0+36], %r0; mov.u64 %l4, format; cvta.global.u64 %l4, %l4;
{{ .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %l4; st.param.b64 [b], %l0;
call.uni (c), vprintf, (a, b); ld.param.b32 %r2, [c]; }}
ld.param.u64 %l5, [p0]; st.global.u32 [%l5], %r2;
EXTRA
}}
"""
ASSERTION = """{ .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s;
st.param.b64 [m], %l2; st.param.b64 [f], %l2; st.param.b32 [l], 12; call.uni __assertfail, (m, f, l, n, s); }"""
RUNNER = """import sys, numpy as np
sys.path.insert(0, sys.argv[1])
from virtual_device import Device
print(Device(sys.argv[2]).run(sys.stdin.read(), [np.zeros(4, np.uint32)], block=3))"""


def run_printing(device, text):
    """Run the text in a process, and return it with its output."""
    folder = __file__.rsplit("/", 1)[0]
    command = [sys.executable, "-c", RUNNER, folder, device.library]
    process = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
    assert process.returncode == 0, process.stderr
    return process


def test_kernels_print(device):
    lines = run_printing(device, PRINTING.replace("EXTRA", "")).stdout.splitlines()
    assert lines[:3] == [f"{-k}|{k:5.2f}|hello|123456789abcdef|A|%|{k:3}" for k in range(3)]
    assert lines[3].startswith("(0, [array([7,")


def test_a_failed_assertion_is_said(device):
    process = run_printing(device, PRINTING.replace("EXTRA", ASSERTION))
    assert "hello:12: assertion `hello` failed" in process.stderr
    assert f"({ASSERT}," in process.stdout


def test_a_format_that_lies_nowhere_is_a_fault(device):
    process = run_printing(device, PRINTING.replace("EXTRA", "").replace("mov.u64 %l4, format", "mov.u64 %l4, 64"))
    assert "outside" in process.stderr


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_whole_grid_meets(device, schedule):
    """Behind the grid's barrier, each block reads what the farthest block wrote before it."""
    head = """.extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 scope);
    .extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);
    """
    meet = """{ .param .b32 s; .param .b64 h; st.param.b32 [s], 1; call.uni (h), cudaCGGetIntrinsicHandle, (s);
    ld.param.b64 %l5, [h]; }
    { .param .b64 h; .param .b32 f; .param .b32 r; st.param.b64 [h], %l5; st.param.b32 [f], 0;
    call.uni (r), cudaCGSynchronize, (h, f); }"""
    body = f"""ld.param.u64 %l0, [p0]; mul.wide.u32 %l1, %i, 4; add.u64 %l1, %l0, %l1;
    mov.u32 %r1, %ntid.x; mov.u32 %r2, %nctaid.x; mul.lo.u32 %r1, %r1, %r2; sub.u32 %r1, %r1, %i; sub.u32 %r1, %r1, 1;
    mul.wide.u32 %l2, %r1, 4; add.u64 %l2, %l0, %l2; mov.u32 %r3, 0;
    again: add.u32 %r3, %r3, 1; mad.lo.u32 %r4, %i, %r3, 1; st.global.u32 [%l1], %r4;
    {meet} ld.global.u32 %r5, [%l2]; add.u32 %r6, %r6, %r5;
    {meet} setp.lt.u32 %p0, %r3, 3; @%p0 bra again; st.global.u32 [%l1], %r6;"""
    text = kernel("mov.u32 %r6, 0;" + body, ["p0"], head=head)
    code, (values,), stderr = device.run_in_child(
        text, [np.zeros(12 * 48, np.uint32)], schedule, 10**8, grid=12, block=48
    )
    assert code == 0, stderr
    count = 12 * 48
    assert values.tolist() == [sum((count - 1 - k) * turn + 1 for turn in (1, 2, 3)) for k in range(count)]
