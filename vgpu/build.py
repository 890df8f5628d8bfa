"""Build the virtual GPU: python vgpu/build.py [--portable] [--sanitize] [FOLDER]     default: the user's cache.
       For editors and clang-tidy: python vgpu/build.py --compile-commands

Prints the folder that a program's LD_LIBRARY_PATH has to begin with.  Needs a C++17 compiler: CXX, or g++, c++,
clang++, or the one that `pip install ziglang` brings.  --portable: for any Linux, which takes the last, as does
VGPU_COMPILER=zig.  --sanitize: with the address and undefined-behaviour sanitizers; a program then needs
LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libstdc++.so)", too.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "src"
FLAGS = [
    *("-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra"),
    # What is computed must be what the instruction says: no contraction, no assumed rounding.  Registers have any type.
    *("-ffp-contract=off", "-frounding-math", "-fno-strict-aliasing"),
]
SHARED = ("-shared", "-s")  # with FLAGS as well: zig makes C++'s own library, a minute's work, anew for other flags
# Not optimized: it compiles in half the time, and runs a part of the tests only.  A finding ends the process.
SANITIZE = ("-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer")
# For a C library as old as that of the oldest image, and with C++'s own library inside.
PORTABLE = [
    *(sys.executable, "-m", "ziglang", "c++", "-target", "x86_64-linux-gnu.2.17", "-mcpu=x86_64_v3"),
    "-Wno-pass-failed",  # clang tells of each loop that it did not vectorize
]
# Under which names frameworks open what this one library provides, from CUDA 10.0 to 13: a little library each, which
# brings the whole one.  Its source in soname_shims/, and the version that it says it is.
WITHOUT_SYMBOL_VERSIONS = (
    *("libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1", "libnccl.so.2"),
    *("libcufile.so.0", "libcusparseLt.so.0"),
)
OTHER_SYMBOL_VERSIONS = {"libnvshmem_host.so.3": "NVSHMEM"}  # all else: the library's own name
CUDARTS = {"10.0": 10000, "10.1": 10010, "10.2": 10020, "11.0": 11020, "12": 12050, "13": 13000}
NVRTCS = {"11.2": 11070, "12": 12050, "13": 13000}
NAMED = {
    **dict.fromkeys([*WITHOUT_SYMBOL_VERSIONS, *OTHER_SYMBOL_VERSIONS], ("plain_shim", 0)),
    "libnvToolsExt.so.1": ("plain_shim", 0),
    **{f"libnvrtc.so.{name}": ("nvrtc", version) for name, version in NVRTCS.items()},
    **{f"libcublas.so.{name}": ("plain_shim", 0) for name in ("10.0", "10", "11", "12", "13")},
    **{f"libcublasLt.so.{name}": ("plain_shim", 0) for name in ("10", "11", "12", "13")},
    **{f"libcufft.so.{name}": ("plain_shim", 0) for name in ("10.0", "10", "11", "12")},
    **{f"libcupti.so.{name}": ("plain_shim", 0) for name in ("10.0", "10.1", "11.0", "11.2", "11.7", "12", "13")},
    **{f"libcurand.so.{name}": ("plain_shim", 0) for name in ("10.0", "10")},
    **{f"libcusolver.so.{name}": ("plain_shim", 0) for name in ("10.0", "10", "11", "12")},
    **{f"libcusparse.so.{name}": ("plain_shim", 0) for name in ("10.0", "10", "11", "12")},
    **{f"libcudart.so.{name}": ("cudart", version) for name, version in CUDARTS.items()},
    **{f"libcudnn.so.{name}": ("cudnn", version) for name, version in (("7", 7605), ("8", 8907), ("9", 90300))},
}


class NoCompiler(Exception):
    """Nothing here compiles C++."""


def compiler(portable: bool = False) -> list[str]:
    """The command that compiles; NoCompiler with advice where there is none."""
    zig = portable or os.environ.get("VGPU_COMPILER") == "zig"
    for name in [] if zig else filter(None, [os.environ.get("CXX"), "g++", "c++", "clang++"]):
        if found := shutil.which(name):
            return [found, "-march=x86-64-v3"]
    try:
        subprocess.run([sys.executable, "-m", "ziglang", "version"], check=True, capture_output=True)
    except subprocess.CalledProcessError:
        others = "" if zig else "install g++, name one (CXX=...), or "
        raise NoCompiler(f"no C++ compiler: {others}pip install ziglang") from None
    return PORTABLE


def fingerprint(command: list[str], *sources: Path) -> str:
    """Of sources and how they are compiled; every header counts for every source, a list for those beside it.

    Of which environment ziglang is does not count: all of a user's share one build.
    """
    digest = hashlib.sha256(" ".join(part for part in command if part != sys.executable).encode())
    lists = sorted({one for source in sources for one in source.parent.glob("*.def")})
    for path in [*sorted(SOURCES.rglob("*.h")), *lists, *sources]:
        digest.update(path.relative_to(SOURCES).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:20]


def compilation(command: list[str], source: Path) -> list[str]:
    """The command that compiles it; includes are named from SOURCES on."""
    return [*command, "-iquote", str(SOURCES), "-c", str(source)]


def compiled(command: list[str], source: Path, folder: Path) -> Path:
    """Its object, made only where the source or a header has changed."""
    made = folder / f"{source.stem}-{fingerprint(command, source)}.o"
    if not made.exists():
        part = made.with_suffix(f".{os.getpid()}")
        subprocess.run([*compilation(command, source), "-o", str(part)], check=True)
        part.rename(made)
    return made


def link_whole(command: list[str], objects: list[Path], made: Path) -> None:
    link = ["-Wl,-Bsymbolic", "-Wl,-z,defs", f"-Wl,-soname,{made.name}", "-lpthread", "-ldl"]
    subprocess.run([*command, *SHARED, *map(str, objects), *link, "-o", str(made)], check=True)


def link_named(command: list[str], name: str, folder: Path) -> None:
    """A little library: another name of the whole one, which lies beside it."""
    stem, version = NAMED[name]
    what = [f"-DVERSION={version}", str(SOURCES / "soname_shims" / f"{stem}.cpp"), "-o", str(folder / name)]
    whole = [f"-Wl,-soname,{name}", str(folder / "libvgpu.so"), "-Wl,-rpath,$ORIGIN"]
    if name not in WITHOUT_SYMBOL_VERSIONS:  # what was linked with NVIDIA's library does not load without this one
        versions = folder / f"{name}.versions"
        versions.write_text(f"{OTHER_SYMBOL_VERSIONS.get(name, name)} {{ global: *; }};\n")
        whole.append(f"-Wl,--version-script={versions}")
    subprocess.run([*command, *SHARED, *what, *whole], check=True)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One build at a time: compiling takes minutes, and who waits finds what the first has made."""
    (folder / "objects").mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in [*folder.glob("*.part"), *folder.glob("objects/*.[0-9]*")]:  # by builds that were killed
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        yield


def build(folder: Path, portable: bool = False, options: tuple[str, ...] = ()) -> Path:
    """The folder with the library under all its names.  NoCompiler; CalledProcessError: a source does not compile."""
    command = [*compiler(portable), *FLAGS, *options]
    named = sorted((SOURCES / "soname_shims").iterdir())
    sources = library_sources()
    # Of all that lies in it, and of this file, which says so.
    made = folder / fingerprint([*command, Path(__file__).read_text("utf-8")], *sources, *named)
    if not made.exists():
        with alone(folder):
            if not made.exists():
                make(command, sources, named, made)
    return made


def library_sources() -> list[Path]:
    return sorted(set(SOURCES.rglob("*.cpp")) - set((SOURCES / "soname_shims").iterdir()))


def write_compile_commands() -> Path:
    """compile_commands.json beside the sources, where clang-tidy and editors look for it."""
    command = [*compiler(), *FLAGS]
    commands = [
        {"directory": str(SOURCES), "file": str(source), "arguments": compilation(command, source)}
        for source in library_sources()
    ]
    made = SOURCES.parent / "compile_commands.json"
    made.write_text(json.dumps(commands, indent=1) + "\n", "utf-8")
    return made


def make(command: list[str], sources: list[Path], named: list[Path], made: Path) -> None:
    """Compile and link into a folder that is there whole or not at all."""
    folder = made.parent
    part = folder / f"{made.name}.{os.getpid()}.part"
    part.mkdir()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda source: compiled(command, source, folder / "objects"), sources))
        link_whole(command, objects, part / "libvgpu.so")
        list(pool.map(lambda name: link_named(command, name, part), NAMED))
    for script in part.glob("*.versions"):
        script.unlink()
    state = fingerprint(FLAGS, *sources, *named)[:12]
    (part / "sources").write_text(state + "\n")  # for records: which state of this folder ran
    shutil.copy(SOURCES / "soname_shims" / "ptxas", part)
    part.rename(made)


def cache() -> Path:
    """Where it is kept for this user."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tfdet" / "vgpu"


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the virtual GPU and print its folder.")
    parser.add_argument("folder", type=Path, nargs="?", default=cache(), help="where it is kept (default: %(default)s)")
    parser.add_argument("--compiler", action="store_true", help="only print the command that compiles it")
    parser.add_argument("--portable", action="store_true", help="for any Linux; needs ziglang")
    parser.add_argument("--sanitize", action="store_true", help="with the address and undefined-behaviour sanitizers")
    parser.add_argument("--compile-commands", action="store_true", help="only write compile_commands.json")
    arguments = parser.parse_args()
    try:
        if arguments.compiler:
            print(*compiler(arguments.portable))
        elif arguments.compile_commands:
            print(write_compile_commands())
        else:
            print(build(arguments.folder, arguments.portable, SANITIZE if arguments.sanitize else ()))
    except NoCompiler as error:
        print(f"vgpu: {error}", file=sys.stderr)
        return 3
    except subprocess.CalledProcessError as error:
        return error.returncode or 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
