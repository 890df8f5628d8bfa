"""Calls a command with each kind of bad path, each in a process of its own: python bad_paths.py PROJECT FOLDER.

Reads [[command's name, arguments, kind of path, variables], ...] from standard input; "PATH" stands for the path.
Writes for each {"code", "out", "err", "seconds", "left": new files}, or {"skipped": reason}; None as code is a hang.
All that is slow is imported, and read, once before.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import resource
import runpy
import select
import shutil
import signal
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

ADDRESS_SPACE = 8 << 30  # what reads a file without end fails before it harms the machine
SECONDS = 60  # a hang; on a busy machine the slowest takes 5

NAME = "thing"  # each path holds it, and so must each message, except of these
NAMELESS = (".", "..")  # folders next to which no file can be named
_GOOD = Path(os.environ.get("TFDET_GOOD_RECORDS", "/dev/null"))


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _device(minor: int) -> Callable[[Path], None]:
    """Create a device node for the test, so that no device of this machine is touched."""
    return lambda path: os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, minor))


def _socket(path: Path) -> None:
    working_folder = os.getcwd()
    os.chdir(path.parent)  # a socket's address is short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path.name)
    os.chdir(working_folder)


def _bytes(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def _unreadable(path: Path) -> None:
    """Write a file that nobody may read."""
    path.write_bytes(b"{}\n")
    path.chmod(0)


def _sparse(path: Path) -> None:
    """Write a file of 64 GiB of zeros that takes no disk."""
    with path.open("wb") as out:
        out.truncate(1 << 36)


def _with_suffix(end: bytes, content: bytes) -> Callable[[Path], Path]:
    """Write a file whose name ends with those bytes; give its path."""

    def create(path: Path) -> Path:
        path = Path(os.fsdecode(os.fsencode(path) + end))
        path.write_bytes(content)
        return path

    return create


def _with_envelopes(make: Callable[[Path], object]) -> Callable[[Path], None]:
    """Write valid records, and beside them something that is not a file of envelopes."""

    def create(path: Path) -> None:
        shutil.copy(_GOOD, path)
        make(path.with_name(path.name + ".intoto.jsonl"))

    return create


def _folder(mode: int, inside: bool) -> Callable[[Path], Path]:
    """Create a folder with these permissions, with a file in it or without; give the path of the file."""

    def create(path: Path) -> Path:
        path.mkdir()
        if inside:
            (path / "inside").write_bytes(b"{}\n")
        path.chmod(mode)
        return path / "inside"

    return create


# What stands at the path; what a maker gives is another path to be named.
KINDS: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: None,
    "below a file": lambda path: (path.write_bytes(b""), path / "below")[1],
    "folder": lambda path: path.mkdir(),
    "fifo": _fifo,
    "socket": _socket,
    "endless device": _device(5),
    "full device": _device(7),
    "empty device": _device(3),
    "links in a circle": lambda path: path.symlink_to(path.name),
    "link to nothing": lambda path: path.symlink_to("nowhere"),
    "not UTF-8": _with_suffix(b"\xff\xfe", b"\xff"),
    "not UTF-8, text": _with_suffix(b"\xff.py", b"x = 1\n"),
    "closed": _unreadable,
    "in a closed folder": _folder(0, True),
    "in a folder that is read-only": _folder(0o555, False),
    "empty": _bytes(b""),
    "garbage": _bytes(bytes(range(256)) * 40),
    "deep": _bytes(b"[" * 200_000),
    "deep object": _bytes(b'{"a":' * 50_000 + b"0" + b"}" * 50_000 + b"\n"),
    "endless line": _sparse,
    "long name": lambda path: path.with_name(NAME * 60),
    "longer name": lambda path: path.with_name(NAME * 1000),
    "envelopes: fifo": _with_envelopes(_fifo),
    "envelopes: folder": _with_envelopes(lambda path: path.mkdir()),
    "envelopes: circle": _with_envelopes(lambda path: path.symlink_to(path.name)),
    "envelopes: garbage": _with_envelopes(_bytes(b"\xff\n{}\n" + b"[" * 100_000)),
    "full disk": lambda path: None,
    **{name: lambda path, name=name: Path(name) for name in NAMELESS},
}  # fmt: skip


def _without_privileges() -> None:
    """Drop root's capability to open every file, which an ordinary user does not have."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
    data = (ctypes.c_uint32 * 6)()
    if libc.capget(header, data) == 0:
        data[0] &= ~0b1110  # of CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and CAP_FOWNER
        libc.capset(header, data)


def _call(arguments: list[str], kind: str, folder: Path, environ: dict[str, str]) -> None:
    """Run the command in the forked child: `tfdet`, or a module if the arguments begin with -m."""
    from tfdet.cli.main import main

    is_module = arguments[0] == "-m"
    os.chdir(folder)
    os.environ.update(environ)
    sys.argv = arguments[1:] if is_module else ["tfdet", *arguments]
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="strict")
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace")
    _without_privileges()
    if kind == "full disk":
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    if is_module:
        runpy.run_module(arguments[1], run_name="__main__")
    else:
        main()


def _in_child(arguments: list[str], kind: str, folder: Path, environ: dict[str, str]) -> int:
    """Return the exit code of the command, and never return to the caller's code."""
    code = 99  # an uncaught exception
    try:
        _call(arguments, kind, folder, environ)
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _run_forked(arguments: list[str], kind: str, folder: Path, environ: dict[str, str]) -> dict[str, Any]:
    """Run the command in a forked child; return its exit code and outputs."""
    pipes = [os.pipe(), os.pipe()]
    child = os.fork()
    if child == 0:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, (_, end) in enumerate(pipes, 1):
            os.dup2(end, number)
        try:
            _in_child(arguments, kind, folder, environ)
        except BaseException:
            import traceback

            os.write(2, traceback.format_exc().encode("utf-8", "replace"))
            os._exit(98)
    for _, end in pipes:
        os.close(end)
    outputs, complete = _read_until_closed([start for start, _ in pipes])
    if not complete:
        os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return {"code": os.waitstatus_to_exitcode(status) if complete else None, "out": outputs[0], "err": outputs[1]}


def _read_until_closed(readers: list[int]) -> tuple[list[str], bool]:
    """Return what was written to the pipes, and whether all were closed before SECONDS had passed."""
    outputs = dict.fromkeys(readers, b"")
    open_ends, deadline = list(readers), time.monotonic() + SECONDS
    while open_ends and time.monotonic() < deadline:
        for end in select.select(open_ends, [], [], 1)[0]:
            chunk = os.read(end, 1 << 16)
            outputs[end] += chunk
            if not chunk:
                open_ends.remove(end)
    for end in readers:
        os.close(end)
    return [outputs[end].decode("utf-8", "backslashreplace") for end in readers], not open_ends


def _remaining_files(folder: Path) -> list[str]:
    """Return the paths of all files in the folder, sorted."""
    return sorted(os.fsencode(path.relative_to(folder)).decode("utf-8", "replace") for path in folder.rglob("*"))


def run_case(arguments: list[str], kind: str, root: Path, environ: dict[str, str]) -> dict[str, Any]:
    """Call the command in a fresh folder; return its result, see the module's docstring."""
    folder = Path(tempfile.mkdtemp(dir=root))
    try:
        path = folder / NAME
        try:
            other = KINDS[kind](path)
        except PermissionError as error:  # making a device takes root
            return {"skipped": str(error)}
        path = other if isinstance(other, Path) else path
        before = _remaining_files(folder)
        words = [word.replace("PATH", str(path)) for word in arguments]
        environ = {name: value.replace("PATH", str(path)) for name, value in environ.items()}
        start_time = time.monotonic()
        result = _run_forked(words, kind, folder, environ)
        return {
            **result,
            "seconds": time.monotonic() - start_time,
            "left": [name for name in _remaining_files(folder) if name not in before],
        }
    finally:
        for inner in folder.rglob("*"):
            if inner.is_dir() and not inner.is_symlink():
                inner.chmod(0o700)
        shutil.rmtree(folder)


def _prepare() -> None:
    """Replace installation, runs and network access, and cache what every command reads."""
    import tfdet
    import tfdet.bundle.build as bundle
    import tfdet.engines.packages as packages
    import tfdet.engines.run as run
    import tfdet.engines.vgpu as vgpu
    import tfdet.fleet.watch as watch
    import tfdet.matrix.load as load
    import tfdet.site.build as site
    import tfdet.verdicts.status_loading as read
    from tfdet.base.paths import find_project
    from tfdet.fleet.progress import compute_progress
    from tfdet.store.cases import current_cases

    for module in pkgutil.walk_packages(tfdet.__path__, "tfdet."):
        if "pytest" not in module.name and "__main__" not in module.name:
            importlib.import_module(module.name)
    load.load_matrix = read.load_matrix = cache(load.load_matrix)  # type: ignore[attr-defined]
    status = read.load_status
    load_all = cache(status)
    read.load_status = lambda project, extra=(), **how: (
        status(project, extra, **how) if extra else load_all(project, **how)
    )
    installed_versions = packages.installed_versions
    own_python = packages.active_python()
    packages.installed_versions = lambda python: (
        {"tensorflow": "2.0.0"} if python == own_python else installed_versions(python)
    )
    vgpu.library_folder = lambda *a, **k: Path("/nowhere")
    vgpu.environ = lambda *a, **k: dict(os.environ)
    run.engine_for = lambda *a: _Probe()
    watch.watch = lambda folder, cluster, on_progress, seconds: compute_progress(folder, cluster.jobs_in_flight())
    empty = Path(tempfile.mkdtemp(dir=sys.argv[2])) / "site"
    (empty / "package").mkdir(parents=True)
    (empty / "package" / "__init__.py").write_text("")
    bundle.install = lambda *a: empty
    site._write = lambda facts, evidence, writer: writer.text("index.html", "") or []
    site._assets = lambda facts, writer, changes, url: writer.text("site.json", "{}")
    project = find_project()
    read.load_status(project)
    current_cases(project)
    _warm()
    gc.freeze()


def _warm() -> None:
    """Import the modules that commands import on first use."""
    from tfdet.cli.main import app

    silent = open(os.devnull, "w")  # noqa: SIM115
    for words in (["status", "--json"], ["envs"], ["key", "show"], ["check", "--json"], ["audit", "/nowhere/x.so"]):
        streams = contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent)
        with streams[0], streams[1], contextlib.suppress(Exception, SystemExit):
            app(words)


class _Probe:
    """Begins and ends like tfdet_probe when there is nothing to run."""

    def run(self, request: Any) -> int:
        from tfdet_common.journal import Journal, JournalUnusableError

        try:
            Journal(str(request.journal), exclusive=True)
        except JournalUnusableError as error:
            sys.stderr.write(f"tfdet: {error}\n")
            return 2
        except OSError as error:
            sys.stderr.write(f"tfdet: cannot write the records: {error}\n")
            return 2
        return 0


def _results() -> Iterator[dict[str, Any]]:
    for _, arguments, kind, environ in json.load(sys.stdin):
        yield run_case(arguments, kind, Path(sys.argv[2]), environ)


if __name__ == "__main__":
    os.environ["TFDET_ROOT"] = sys.argv[1]
    _prepare()
    print(json.dumps(list(_results())))
