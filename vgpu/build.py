"""Build the virtual GPU: python vgpu/build.py [--sanitize] [FOLDER]     default: the user's cache.

Prints the folder that a program's LD_LIBRARY_PATH has to begin with.  Needs a C++17 compiler: CXX, or g++, c++,
clang++, or the one that `pip install ziglang` brings.  With --sanitize every access of the library itself is watched:
the program then needs LD_PRELOAD=$(g++ -print-file-name=libasan.so), too.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "src"
FLAGS = [
    *("-std=c++17", "-O2", "-march=x86-64-v3", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra"),
    # What is computed must be what the instruction says: no contraction, no assumed rounding.  Registers have any type.
    *("-ffp-contract=off", "-frounding-math", "-fno-strict-aliasing"),
]
SANITIZE = ("-g1", "-fsanitize=address", "-fno-omit-frame-pointer")
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


def compiler() -> list[str]:
    """The command that compiles; NoCompiler with advice where there is none."""
    for name in filter(None, [os.environ.get("CXX"), "g++", "c++", "clang++"]):
        if found := shutil.which(name):
            return [found]
    try:
        subprocess.run([sys.executable, "-m", "ziglang", "version"], check=True, capture_output=True)
    except subprocess.CalledProcessError:
        raise NoCompiler("no C++ compiler: install g++, or pip install ziglang, or name one: CXX=...") from None
    return [sys.executable, "-m", "ziglang", "c++", "-target", "x86_64-linux-gnu.2.17"]


def fingerprint(command: list[str], *sources: Path) -> str:
    """Of what the compiler is given; every header counts for every source."""
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


def build(folder: Path, *options: str) -> Path:
    """The folder with the library under all its names.  NoCompiler; CalledProcessError: a source does not compile."""
    command = [*compiler(), *options]
    sources = sorted(SOURCES.rglob("*.cpp"))
    made = folder / fingerprint(command, *sources)
    if made.exists():
        return made
    (folder / "objects").mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda source: compiled(command, source, folder / "objects"), sources))
    part = folder / f"{made.name}.{os.getpid()}.part"
    part.mkdir()
    link = ["-shared", "-Wl,-Bsymbolic", "-Wl,-z,defs", "-o", str(part / "libvgpu.so"), "-lpthread"]
    subprocess.run([*command, *map(str, objects), *link], check=True)
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
    options = SANITIZE if "--sanitize" in sys.argv else ()
    folders = [argument for argument in sys.argv[1:] if argument != "--sanitize"]
    try:
        print(build(Path(folders[0]) if folders else cache(), *options))
    except NoCompiler as error:
        print(f"vgpu: {error}", file=sys.stderr)
        return 3
    except subprocess.CalledProcessError as error:
        return error.returncode or 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
