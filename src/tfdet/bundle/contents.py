"""Choose which files of an installed environment go into its bundle, which are replaced, and which are left out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from tfdet.base.errors import UsageError, unknown_name_error
from tfdet.bundle import stub, trim

SITE = "site"

# What never goes along, by the words that records say of it.  Patterns are of paths below site-packages; `*` takes
# slashes too.
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

# CUDA's libraries by their short names; what a host may bring itself, and what can be stubbed.
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
_JIT_LINKER = "nvidia/nvjitlink/*"  # only cuSOLVER and cuSPARSE link against it


@dataclass(frozen=True)
class TrimOptions:
    """What the user asks to leave out.

    capability: of the host's GPUs; None keeps the code for all.  host_packages: the host has the framework itself.
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
        if twice := sorted(set(self.stubs) & set(self.host_libraries)):
            raise UsageError(
                f"{twice[0]}: in both --stub-libraries and --use-host-libraries", "Name it in one of them."
            )
        if self.host_packages and (self.capability or self.stubs or self.host_libraries):
            raise UsageError(
                "--host-packages cannot be combined with options about libraries",
                "Leave out --compute-capability, --use-host-libraries and --stub-libraries, or --host-packages.",
            )


@dataclass(frozen=True)
class Entry:
    """One file of the bundle: bytes made here, or a file with the spans of it that are blanked."""

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
    """The files, and what every record made with them has to say."""

    entries: list[Entry] = field(default_factory=list)
    trimmed: list[str] = field(default_factory=list)
    stubbed: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    from_host: list[str] = field(default_factory=list)


def site_contents(site: Path, options: TrimOptions) -> Contents:
    """Return the files of the packages installed in `site`, trimmed by the options."""
    found = Contents()
    code = tables = 0
    for path in sorted(p for p in site.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        name = path.relative_to(site).as_posix()
        if reason := _left_out(name, options):
            _record(found.left_out, reason)
        elif library := _match(name, options.host_libraries):
            _record(found.from_host, path.name)
        elif name in _STUB_MODULES:
            module = path.name.split(".")[0]
            found.entries.append(Entry(f"{SITE}/{name.rsplit('/', 1)[0]}/{module}.py", stub.python_module(module)))
            _record(found.stubbed, module)
        elif library := _match(name, options.stubs):
            found.entries.append(Entry(f"{SITE}/{name}", stub.shared_library(path.name)))
            _record(found.stubbed, library if library == "cudnn-adv" else path.name)
        else:
            blanked = (
                trim.find_blanked_spans(path, options.capability) if _is_library(path.name) else trim.BlankedSpans()
            )
            code, tables = code + blanked.code, tables + blanked.tables
            executable = bool(path.stat().st_mode & 0o100)
            found.entries.append(Entry(f"{SITE}/{name}", path, executable, blanked.spans))
    if code and options.capability:
        major, minor = options.capability
        found.trimmed.append(f"GPU code for other compute capabilities than {major}.{minor}: {code >> 20} MiB")
    if tables:
        found.trimmed.append(f"symbol and debug tables: {tables >> 20} MiB")
    return found


def folder_contents(folder: Path, name: str, *patterns: str) -> list[Entry]:
    """Read the matching files of a folder now, under `name`: they may be edited while the bundle is packed."""
    found = {path for pattern in patterns for path in folder.rglob(pattern)}
    files = sorted(path for path in found if path.is_file() and "__pycache__" not in path.parts)
    return [Entry(f"{name}/{path.relative_to(folder).as_posix()}", path.read_bytes()) for path in files]


def _is_library(name: str) -> bool:
    return re.search(r"\.so(\.\d+)*$", name) is not None


def _left_out(name: str, options: TrimOptions) -> str | None:
    for reason, patterns in _compiled().items():
        if patterns.match(name):
            return reason
    replaced = {*options.stubs, *options.host_libraries}
    if fnmatchcase(name, _JIT_LINKER) and {"cusolver", "cusparse"} <= replaced:
        return "nvJitLink"
    return None


@lru_cache
def _compiled() -> dict[str, re.Pattern[str]]:
    return {reason: _any_of(patterns) for reason, patterns in _LEFT_OUT.items()}


def _any_of(patterns: list[str]) -> re.Pattern[str]:
    from fnmatch import translate

    return re.compile("|".join(map(translate, patterns)))


def _match(name: str, libraries: tuple[str, ...]) -> str | None:
    return next((library for library in libraries if fnmatchcase(name, _CUDA[library])), None)


def _record(labels: list[str], label: str) -> None:
    if label not in labels:
        labels.append(label)


def glibc(site: Path) -> str:
    """The oldest glibc that every package takes, by the platform tags of the wheels: such as 2.27."""
    least = (2, 17)
    for wheel in site.glob("*.dist-info/WHEEL"):
        tags = re.findall(r"manylinux_2_(\d+)_x86_64", wheel.read_text("utf-8", "replace"))
        if tags:
            least = max(least, (2, min(map(int, tags))))
    return f"{least[0]}.{least[1]}"
