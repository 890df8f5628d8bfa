"""Builder of the virtual GPU.

    python vgpu/build.py [--portable] [--sanitize] [FOLDER]     builds into FOLDER; default: the user's cache
    python vgpu/build.py --compile-commands                     writes compile_commands.json for editors and clang-tidy

Prints the folder with the libraries, which must be first in a program's LD_LIBRARY_PATH.  Requires a C++17 compiler:
CXX, g++, c++, clang++, or zig (`pip install ziglang`).  --portable builds for any Linux with zig, as does
VGPU_COMPILER=zig.  --sanitize builds with the address and undefined-behaviour sanitizers; programs then also need
LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libstdc++.so)".
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
    *("-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra"),
    # Results must be exactly those of the instructions: no contraction.  Registers have any type.  No floating-point
    # exception is read: without -fno-trapping-math g++ vectorizes no loop with a comparison.
    *("-ffp-contract=off", "-fno-trapping-math", "-fno-strict-aliasing"),
]
SHARED = ("-shared", "-s")  # used with FLAGS: zig rebuilds the C++ library, which takes a minute, for other flags
# Not optimized: this halves the compile time, and only some tests use it.  A finding ends the process.
SANITIZE = ("-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer")
# For the oldest glibc of all images, and with a statically linked C++ library.
PORTABLE = [
    *(sys.executable, "-m", "ziglang", "c++", "-target", "x86_64-linux-gnu.2.17", "-mcpu=x86_64_v3"),
    "-Wno-pass-failed",  # clang warns of each loop that it did not vectorize
]
# The names under which frameworks open CUDA libraries, from CUDA 10.0 to 13.  Each is a shim, which loads libvgpu.so;
# the values are the shim's source in soname_shims/ and the version that it reports.
WITHOUT_SYMBOL_VERSIONS = (
    *("libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1", "libnccl.so.2"),
    *("libcufile.so.0", "libcusparseLt.so.0"),
)
OTHER_SYMBOL_VERSIONS = {"libnvshmem_host.so.3": "NVSHMEM"}  # default: the library's own name
CUDARTS = {"10.0": 10000, "10.1": 10010, "10.2": 10020, "11.0": 11020, "12": 12050, "13": 13000}
NVRTCS = {"11.2": 11070, "12": 12050, "13": 13000}
SHIMS = {
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
    # 99900: newer than any release, since frameworks require at least the cuDNN that they were built with.
    **{f"libcudnn.so.{name}": ("cudnn", version) for name, version in (("7", 7605), ("8", 8907), ("9", 99900))},
}


class NoCompiler(Exception):
    """No C++ compiler was found."""


def compiler(portable: bool = False) -> list[str]:
    """Return the command of the compiler; raises NoCompiler, with advice, if there is none."""
    use_zig = portable or os.environ.get("VGPU_COMPILER") == "zig"
    for name in [] if use_zig else filter(None, [os.environ.get("CXX"), "g++", "c++", "clang++"]):
        if path := shutil.which(name):
            return [path, "-march=x86-64-v3"]
    try:
        subprocess.run([sys.executable, "-m", "ziglang", "version"], check=True, capture_output=True)
    except subprocess.CalledProcessError:
        others = "" if use_zig else "install g++, name one (CXX=...), or "
        raise NoCompiler(f"no C++ compiler: {others}pip install ziglang") from None
    return PORTABLE


def fingerprint(command: list[str], *sources: Path) -> str:
    """Return a hash of sources and their compile command; includes all headers, and .def files beside the sources.

    The path of the Python that runs ziglang is not included, so that all environments of a user share one build.
    """
    digest = hashlib.sha256(" ".join(part for part in command if part != sys.executable).encode())
    definitions = sorted({path for source in sources for path in source.parent.glob("*.def")})
    for path in [*sorted(SOURCES.rglob("*.h")), *definitions, *sources]:
        digest.update(path.relative_to(SOURCES).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:20]


def compile_command(command: list[str], source: Path) -> list[str]:
    """Return the command that compiles a source; includes are relative to SOURCES."""
    return [*command, "-iquote", str(SOURCES), "-c", str(source)]


def compile_source(command: list[str], source: Path, folder: Path) -> Path:
    """Return the object file of a source; compiles it only if the source or a header has changed."""
    object_file = folder / f"{source.stem}-{fingerprint(command, source)}.o"
    if not object_file.exists():
        part = object_file.with_suffix(f".{os.getpid()}")
        subprocess.run([*compile_command(command, source), "-o", str(part)], check=True)
        part.rename(object_file)
    return object_file


def link_library(command: list[str], objects: list[Path], library: Path) -> None:
    link = ["-Wl,-Bsymbolic", "-Wl,-z,defs", f"-Wl,-soname,{library.name}", "-lpthread", "-ldl"]
    subprocess.run([*command, *SHARED, *map(str, objects), *link, "-o", str(library)], check=True)


def link_shim(command: list[str], name: str, folder: Path) -> None:
    """Build the shim of that name, which loads libvgpu.so from its own folder."""
    stem, version = SHIMS[name]
    inputs = [f"-DVERSION={version}", str(SOURCES / "soname_shims" / f"{stem}.cpp"), "-o", str(folder / name)]
    link = [f"-Wl,-soname,{name}", str(folder / "libvgpu.so"), "-Wl,-rpath,$ORIGIN"]
    if name not in WITHOUT_SYMBOL_VERSIONS:  # programs linked with NVIDIA's library require the symbol version
        versions = folder / f"{name}.versions"
        versions.write_text(f"{OTHER_SYMBOL_VERSIONS.get(name, name)} {{ global: *; }};\n")
        link.append(f"-Wl,--version-script={versions}")
    subprocess.run([*command, *SHARED, *inputs, *link], check=True)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of a build folder, so that builds, which take minutes, run one at a time.  Removes leftovers."""
    (folder / "objects").mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for path in [*folder.glob("*.part"), *folder.glob("objects/*.[0-9]*")]:  # of builds that were killed
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        yield


def build(folder: Path, portable: bool = False, options: tuple[str, ...] = ()) -> Path:
    """Return the folder with the library and its shims, which is built if necessary.

    Raises NoCompiler, and CalledProcessError if a source does not compile.
    """
    command = [*compiler(portable), *FLAGS, *options]
    shims = sorted((SOURCES / "soname_shims").iterdir())
    sources = library_sources()
    # The fingerprint includes this file, which determines the contents of the folder.
    target = folder / fingerprint([*command, Path(__file__).read_text("utf-8")], *sources, *shims)
    if not target.exists():
        with lock_folder(folder):
            if not target.exists():
                build_folder(command, sources, shims, target)
    return target


def library_sources() -> list[Path]:
    return sorted(set(SOURCES.rglob("*.cpp")) - set((SOURCES / "soname_shims").iterdir()))


def write_compile_commands() -> Path:
    """Write compile_commands.json to vgpu/, where clang-tidy and editors look for it; return its path."""
    command = [*compiler(), *FLAGS]
    commands = [
        {"directory": str(SOURCES), "file": str(source), "arguments": compile_command(command, source)}
        for source in library_sources()
    ]
    path = SOURCES.parent / "compile_commands.json"
    path.write_text(json.dumps(commands, indent=1) + "\n", "utf-8")
    return path


def build_folder(command: list[str], sources: list[Path], shims: list[Path], target: Path) -> None:
    """Compile and link into the folder `target`, which appears only when it is complete."""
    folder = target.parent
    part = folder / f"{target.name}.{os.getpid()}.part"
    part.mkdir()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda source: compile_source(command, source, folder / "objects"), sources))
        link_library(command, objects, part / "libvgpu.so")
        list(pool.map(lambda name: link_shim(command, name, part), SHIMS))
    for script in part.glob("*.versions"):
        script.unlink()
    state = fingerprint(FLAGS, *sources, *shims)[:12]
    (part / "sources").write_text(state + "\n")  # records contain it, to identify the sources
    shutil.copy(SOURCES / "soname_shims" / "ptxas", part)  # for frameworks that call ptxas: it keeps the PTX
    part.rename(target)


def cache() -> Path:
    """Return the folder of this user's builds."""
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
    except KeyboardInterrupt:  # a killed build is removed by the next one
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
