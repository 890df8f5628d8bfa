"""Selection of an environment's files for a bundle: which are included, which replaced by stubs, which left out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from tfdet.base.errors import UsageError, unknown_name_error
from tfdet.bundle import stub, trim

SITE = "site"

# {label in records: patterns of the files that no bundle contains}.  Patterns are of paths below site-packages; `*`
# matches slashes, too.
_LEFT_OUT = {
    "headers and static libraries": [
        "*/include/*", "*.h", "*.hpp", "*.cuh", "*.a", "*.pxd", "*.pyf", "*.f90", "*.lib",
        "tensorflow/xla_aot_runtime_src/*",
    ],
    "tests of packages": ["numpy/*/tests/*", "numpy/tests/*", "h5py/tests/*", "*/idlelib/*"],
    "installers' files": ["bin/*", "*.dist-info/RECORD", "*.exe", "*.pyi", "_distutils_hack/*",
                          "distutils-precedence.pth", "*.pyc", "*.data/*", ".lock"],
    "libclang": ["clang/*", "libclang-*.dist-info/*"],
    "_xla_ops.so": ["tensorflow/compiler/tf2xla/ops/_xla_ops.so"],
    "stablehlo_extension.so": ["tensorflow/compiler/mlir/stablehlo/stablehlo_extension.so"],
    "NCCL": ["nvidia/nccl/*"],
    "cuRAND": ["nvidia/curand/*"],
    "NVRTC": ["nvidia/cuda_nvrtc/*"],
    "nvcc": ["nvidia/cuda_nvcc/bin/*", "nvidia/cuda_nvcc/nvvm/bin/*", "nvidia/cuda_nvcc/nvvm/lib64/*"],
    "CUPTI's performance counters": ["nvidia/cuda_cupti/lib/libnvperf*", "nvidia/cuda_cupti/lib/libpcsampl*",
                                     "nvidia/cuda_cupti/lib/libcheckpoint*"],
    "cuSOLVER for several GPUs": ["nvidia/cusolver/lib/libcusolverMg.so*"],
    "wrappers of cuBLAS and cuFFT": ["nvidia/cublas/lib/libnvblas.so*", "nvidia/cufft/lib/libcufftw.so*"],
}  # fmt: skip

_STUB_MODULES = ["tensorflow/python/profiler/internal/_pywrap_profiler_plugin.so"]

# CUDA's libraries by their short names.
_CUDA = {
    "cublas": "nvidia/cublas/lib/libcublas*.so.*",
    "cudnn": "nvidia/cudnn/lib/libcudnn*.so.*",
    "cudart": "nvidia/cuda_runtime/lib/libcudart.so.*",
    "cufft": "nvidia/cufft/lib/libcufft.so.*",
    "cusolver": "nvidia/cusolver/lib/libcusolver.so.*",
    "cusparse": "nvidia/cusparse/lib/libcusparse.so.*",
    "cudnn-adv": "nvidia/cudnn/lib/libcudnn_adv.so.*",
}
STUBBABLE_LIBRARIES = ("cufft", "cusolver", "cusparse", "cudnn-adv")
HOST_LIBRARIES = ("cublas", "cudnn", "cudart", "cufft", "cusolver", "cusparse")
_JIT_LINKER = "nvidia/nvjitlink/*"  # required by cuSOLVER and cuSPARSE only


@dataclass(frozen=True)
class TrimOptions:
    """The user's choice of what to leave out of a bundle.

    capability: compute capability of the host's GPUs; None keeps the code for all.  stubs: libraries to replace by
    stubs.  host_libraries: libraries to take from the host.  host_packages: the host has the framework itself.
    """

    capability: tuple[int, int] | None = None
    stubs: tuple[str, ...] = ()
    host_libraries: tuple[str, ...] = ()
    host_packages: bool = False

    def __post_init__(self) -> None:
        for name in self.stubs:
            if name not in STUBBABLE_LIBRARIES:
                raise unknown_name_error("stubbable library", name, STUBBABLE_LIBRARIES)
        for name in self.host_libraries:
            if name not in HOST_LIBRARIES:
                raise unknown_name_error("host library", name, HOST_LIBRARIES)
        if duplicates := sorted(set(self.stubs) & set(self.host_libraries)):
            raise UsageError(
                f"{duplicates[0]}: in both --stub-libraries and --use-host-libraries", "Name it in one of them."
            )
        if self.host_packages and (self.capability or self.stubs or self.host_libraries):
            raise UsageError(
                "--host-packages cannot be combined with options about libraries",
                "Leave out --compute-capability, --use-host-libraries and --stub-libraries, or --host-packages.",
            )


@dataclass(frozen=True)
class Entry:
    """One file of the bundle.  source: its bytes, or a file.  spans: the parts of a file that are read as zeros."""

    path: str
    source: Path | bytes
    executable: bool = False
    spans: tuple[trim.Span, ...] = ()

    @property
    def size(self) -> int:
        return len(self.source) if isinstance(self.source, bytes) else self.source.stat().st_size

    def read(self, start: int, size: int) -> bytes | bytearray:
        if isinstance(self.source, bytes):
            return self.source[start : start + size]
        return trim.read_blanked(self.source, start, size, self.spans)


@dataclass
class Contents:
    """The files of a bundle, and the labels of changes (records.Bundle), which every record made with it contains."""

    entries: list[Entry] = field(default_factory=list)
    trimmed: list[str] = field(default_factory=list)
    stubbed: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    from_host: list[str] = field(default_factory=list)


def site_contents(site: Path, options: TrimOptions) -> Contents:
    """Return the files of the packages installed in `site`, trimmed by the options."""
    contents = Contents()
    code = tables = 0
    for path in sorted(p for p in site.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        name = path.relative_to(site).as_posix()
        if reason := _exclusion_reason(name, options):
            _add_once(contents.left_out, reason)
        elif library := _find_library(name, options.host_libraries):
            _add_once(contents.from_host, path.name)
        elif name in _STUB_MODULES:
            module = path.name.split(".")[0]
            contents.entries.append(Entry(f"{SITE}/{name.rsplit('/', 1)[0]}/{module}.py", stub.python_module(module)))
            _add_once(contents.stubbed, module)
        elif library := _find_library(name, options.stubs):
            contents.entries.append(Entry(f"{SITE}/{name}", stub.shared_library(path.name)))
            _add_once(contents.stubbed, library if library == "cudnn-adv" else path.name)
        else:
            blanked = (
                trim.find_blanked_spans(path, options.capability) if _is_library(path.name) else trim.BlankedSpans()
            )
            code, tables = code + blanked.code, tables + blanked.tables
            executable = bool(path.stat().st_mode & 0o100)
            contents.entries.append(Entry(f"{SITE}/{name}", path, executable, blanked.spans))
    if code and options.capability:
        major, minor = options.capability
        contents.trimmed.append(f"GPU code for other compute capabilities than {major}.{minor}: {code >> 20} MiB")
    if tables:
        contents.trimmed.append(f"symbol and debug tables: {tables >> 20} MiB")
    return contents


def folder_contents(folder: Path, name: str, *patterns: str) -> list[Entry]:
    """Return the matching files of a folder as entries below `name`, with their contents, which may change later."""
    paths = {path for pattern in patterns for path in folder.rglob(pattern)}
    files = sorted(path for path in paths if path.is_file() and "__pycache__" not in path.parts)
    return [Entry(f"{name}/{path.relative_to(folder).as_posix()}", path.read_bytes()) for path in files]


def _is_library(name: str) -> bool:
    return re.search(r"\.so(\.\d+)*$", name) is not None


def _exclusion_reason(name: str, options: TrimOptions) -> str | None:
    """Return the label under which the bundle leaves the file out; None if it does not."""
    for reason, patterns in _exclusion_patterns().items():
        if patterns.match(name):
            return reason
    replaced = {*options.stubs, *options.host_libraries}
    if fnmatchcase(name, _JIT_LINKER) and {"cusolver", "cusparse"} <= replaced:
        return "nvJitLink"
    return None


@lru_cache
def _exclusion_patterns() -> dict[str, re.Pattern[str]]:
    return {reason: _join_patterns(patterns) for reason, patterns in _LEFT_OUT.items()}


def _join_patterns(patterns: list[str]) -> re.Pattern[str]:
    from fnmatch import translate

    return re.compile("|".join(map(translate, patterns)))


def _find_library(name: str, libraries: tuple[str, ...]) -> str | None:
    """Return the library to which the file belongs; None if it belongs to none of these."""
    return next((library for library in libraries if fnmatchcase(name, _CUDA[library])), None)


def _add_once(labels: list[str], label: str) -> None:
    if label not in labels:
        labels.append(label)


def minimum_glibc(site: Path) -> str:
    """Return the oldest glibc version, such as 2.27, that all packages support by their wheels' platform tags."""
    minimum = (2, 17)
    for wheel in site.glob("*.dist-info/WHEEL"):
        tags = re.findall(r"manylinux_2_(\d+)_x86_64", wheel.read_text("utf-8", "replace"))
        if tags:
            minimum = max(minimum, (2, min(map(int, tags))))
    return f"{minimum[0]}.{minimum[1]}"
