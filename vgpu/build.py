"""Build the virtual GPU: python vgpu/build.py [--portable] [FOLDER]     default: the user's cache.

Prints the folder that a program's LD_LIBRARY_PATH has to begin with.  Needs a C++17 compiler: CXX, or g++, c++,
clang++, or the one that `pip install ziglang` brings.  --portable: for any Linux, which takes the last.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "src"
FLAGS = [
    *("-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra"),
    # What is computed must be what the instruction says: no contraction, no assumed rounding.  Registers have any type.
    *("-ffp-contract=off", "-frounding-math", "-fno-strict-aliasing"),
]
# For a C library as old as that of the oldest image, and with C++'s own library inside.
PORTABLE = [sys.executable, "-m", "ziglang", "c++", "-target", "x86_64-linux-gnu.2.17", "-mcpu=x86_64_v3"]
# Under which names frameworks open what this one library provides.
NAMES = [
    *("libcuda.so.1", "libcuda.so"),
    *(f"libcudart.so.{version}" for version in ("8.0", "9.0", "9.2", "10.0", "10.1", "10.2", "11.0", "12")),
    *(f"libcublas.so.{version}" for version in ("9.0", "10.0", "10", "11", "12")),
    *(f"libcublasLt.so.{version}" for version in ("10", "11", "12")),
    *(f"libcufft.so.{version}" for version in ("9.0", "10.0", "10", "11")),
    *(f"libcurand.so.{version}" for version in ("9.0", "10.0", "10")),
    *(f"libcusolver.so.{version}" for version in ("9.0", "10.0", "10", "11")),
    *(f"libcusparse.so.{version}" for version in ("9.0", "10.0", "10", "11", "12")),
    *(f"libcudnn.so.{version}" for version in ("7", "8", "9")),
    *(f"libcupti.so.{version}" for version in ("10.0", "10.1", "11.0", "11.2", "12")),
]


class NoCompiler(Exception):
    """Nothing here compiles C++."""


def compiler(portable: bool = False) -> list[str]:
    """The command that compiles; NoCompiler with advice where there is none."""
    for name in [] if portable else filter(None, [os.environ.get("CXX"), "g++", "c++", "clang++"]):
        if found := shutil.which(name):
            return [found, "-march=x86-64-v3"]
    try:
        subprocess.run([sys.executable, "-m", "ziglang", "version"], check=True, capture_output=True)
    except subprocess.CalledProcessError:
        others = "" if portable else "install g++, name one (CXX=...), or "
        raise NoCompiler(f"no C++ compiler: {others}pip install ziglang") from None
    return PORTABLE


def fingerprint(command: list[str], *sources: Path) -> str:
    """Of sources and how they are compiled; every header counts for every source."""
    digest = hashlib.sha256(" ".join([*command, *FLAGS]).encode())
    for path in [*sorted(SOURCES.rglob("*.h")), *sources]:
        digest.update(path.relative_to(SOURCES).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:20]


def compiled(command: list[str], source: Path, folder: Path) -> Path:
    """Its object, made only where the source or a header has changed."""
    made = folder / f"{source.stem}-{fingerprint(command, source)}.o"
    if not made.exists():
        part = made.with_suffix(f".{os.getpid()}")
        subprocess.run([*command, *FLAGS, "-c", str(source), "-o", str(part)], check=True)
        part.rename(made)
    return made


def build(folder: Path, portable: bool = False) -> Path:
    """The folder with the library under all its names.  NoCompiler; CalledProcessError: a source does not compile."""
    command = compiler(portable)
    sources = sorted(SOURCES.rglob("*.cpp"))
    made = folder / fingerprint([*command, Path(__file__).read_text("utf-8")], *sources)  # and of what lies in it
    if made.exists():
        return made
    (folder / "objects").mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda source: compiled(command, source, folder / "objects"), sources))
    part = folder / f"{made.name}.{os.getpid()}.part"
    part.mkdir()
    link = ["-shared", "-s", "-Wl,-Bsymbolic", "-Wl,-z,defs", "-o", str(part / "libvgpu.so"), "-lpthread"]
    subprocess.run([*command, *map(str, objects), *link], check=True)
    (part / "sources").write_text(fingerprint([], *sources)[:12] + "\n")  # for records: which state of this folder ran
    for name in NAMES:
        (part / name).symlink_to("libvgpu.so")
    try:
        part.rename(made)
    except OSError:  # somebody else was sooner
        shutil.rmtree(part)
    return made


def cache() -> Path:
    """Where it is kept for this user."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tfdet" / "vgpu"


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the virtual GPU and print its folder.")
    parser.add_argument("folder", type=Path, nargs="?", default=cache(), help="where it is kept (default: %(default)s)")
    parser.add_argument("--compiler", action="store_true", help="only print the command that compiles it")
    parser.add_argument("--portable", action="store_true", help="for any Linux; needs ziglang")
    arguments = parser.parse_args()
    try:
        if arguments.compiler:
            print(*compiler(arguments.portable))
        else:
            print(build(arguments.folder, arguments.portable))
    except NoCompiler as error:
        print(f"vgpu: {error}", file=sys.stderr)
        return 3
    except subprocess.CalledProcessError as error:
        return error.returncode or 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
