"""Models of the files that people write in matrix/: frameworks, environments, sources and solutions.

Their docstrings and descriptions are part of matrix/schema.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, Field, model_validator

from tfdet.matrix import ranges
from tfdet.matrix.call_patterns import ApiNames, CallPattern, Calls, as_dotted_name, patterns_by_name
from tfdet.matrix.field_types import Device, Pattern, Range, StrictModel, Text, Version

UNKNOWN = "unknown"
NONE = "none"  # the control


def _validate_driver(text: str) -> str:
    """Return the text; ValueError if it does not begin with a version, which checks can compare."""
    if text != UNKNOWN and ranges.leading_version(text) is None:
        raise ValueError(f"{text!r} does not begin with a number; use {UNKNOWN!r} for an uncited fact")
    return text


class TableColumn(StrictModel):
    """A column of the GPU tables: environments by line and range."""

    title: Text
    stock: Range | None = None
    ngc: Range | None = None


class Framework(StrictModel):
    """What a framework calls things."""

    name: Text
    package: Text = Field(description="what a program imports, and what its requirements are called, or begin with")
    lines: dict[Literal["stock", "ngc"], Text] = Field(description="whose builds: how tables call them")
    variables: list[Text] = Field(
        default=[], description="environment variables that bear on determinism and that no solution sets"
    )
    published: bool = Field(default=False, description="its tables stand in README.md and docs, its library is shipped")
    columns: list[TableColumn] = Field(default=[], description="of the GPU tables")
    page: Text | None = Field(default=None, description="the page in docs/reference that shows its ops' own lists")
    library: Text | None = Field(
        default=None,
        description="the folder of tfdeterminism that switches it on, and is told what stays; absent: itself, or none",
    )
    recipe: list[Text] = Field(default=[], description="solutions whose lines, one after another, are the recipe")
    virtual_gpu_packages: list[Text] = Field(
        default=[],
        description="NVIDIA's packages that it needs on the virtual GPU, too, for they need no GPU; how names begin",
    )
    naming: ApiNames | None = Field(
        default=None, description="how its programs call it; absent: of programs nothing is told"
    )
    cite: list[Text] = Field(min_length=1)


# The framework of an entry is the name of its file's folder: files themselves never contain it.
FrameworkKey = Annotated[str, Field(description='the folder that the file lies in; "": any framework')]


class CompiledPackages(StrictModel):
    """Packages without wheels: they are compiled against the framework once everything else is installed."""

    packages: list[Text] = Field(min_length=1, description="names in the lock files")
    tools: list[Text] = Field(min_length=1, description="commands that must be on PATH")
    variables: dict[str, str] = Field(default={}, description="environment variables of their build")
    conflicts: dict[str, Text] = Field(default={}, description="commands that break their build if found, and why")


class PipRequirements(StrictModel):
    """How pip builds a stock environment, in a venv or an image."""

    python: Text = Field(description="CPython minor that the environment is built with")
    cpu: Text = Field(description="requirement of the CPU build")
    gpu: Text = Field(description="requirement of the GPU build")
    code: Text = Field(default="", description="of the package that holds the GPU code, if `gpu` only brings it")
    constraints: list[Text] = Field(default=[], description="bounds without which it does not import or work")
    extra_requirements: list[Text] = Field(
        default=[], description="what the suite imports beside the framework, NumPy and pytest"
    )
    compiled: CompiledPackages | None = None


class Environment(StrictModel):
    """One pinned software stack. A fact that nobody could cite is the word `unknown`."""

    framework: FrameworkKey = ""
    line: Literal["stock", "ngc"] = Field(description="whose build")
    version: Version = Field(
        description="what claims speak of: the framework's minor (stock), the image's version (ngc)"
    )
    framework_version: Text = Field(description="of the framework's package")
    image: Text = Field(description="repository:tag")
    digest: Text
    python: Text = Field(description="of the image")
    os: Text
    cuda: Text
    cudnn: Text
    min_driver: Annotated[Text, AfterValidator(_validate_driver)]
    cuda_arch: Text
    pip: PipRequirements | None = None
    skip_reason: Text | None = Field(default=None, description="why the suite cannot run there")
    package: Text | None = Field(
        default=None, description="it is for the sources of this package alone, which is beside the framework"
    )
    notes: str = ""
    cite: list[Text] = Field(min_length=1)

    def is_for(self, package: str | None) -> bool:
        """Return whether the environment is for sources of this package (None: of the framework itself)."""
        return self.package in (None, package)

    @model_validator(mode="after")
    def _check_pip(self) -> Environment:
        if (self.line == "stock") != (self.pip is not None):
            raise ValueError("a stock environment has a [pip] table, an ngc one has none")
        return self


class EnvironmentSelector(StrictModel):
    """Environments: of a framework, by line and range of version."""

    framework: FrameworkKey = ""
    stock: Range | None = None
    ngc: Range | None = None
    framework_version: Range | None = Field(
        default=None, description="and the framework's own version, where known: NGC months have a tf1 and a tf2 image"
    )

    def covers(self, environment: Environment) -> bool:
        """Return whether the environment's framework and versions are in the ranges."""
        if self.framework not in ("", environment.framework):
            return False
        is_in_range = ranges.contains(self.stock if environment.line == "stock" else self.ngc, environment.version)
        version = ranges.leading_version(environment.framework_version)
        version_range = self.framework_version
        return is_in_range and (version_range is None or version is None or ranges.contains(version_range, version))


class Claim(EnvironmentSelector):
    """What documents say of a source in some environments."""

    package: Text | None = Field(default=None, description="of its source, which says it")
    device: Device = "gpu"
    solutions: list[Text] = Field(min_length=1, description="each of them by itself")
    outcome: Literal["deterministic", "nondeterministic", "raises", "no-solution"]
    except_cases: list[Text] = Field(default=[], description="cases of which it does not speak")
    partly: bool = Field(default=False, description="it raises for some calls: others may be deterministic")
    note: str = ""
    cite: list[Text] = Field(min_length=1)

    @model_validator(mode="after")
    def _check_range(self) -> Claim:
        if self.stock is None and self.ngc is None:
            raise ValueError("a claim needs a range: stock, ngc or both")
        return self

    def covers(self, environment: Environment) -> bool:
        """Return whether the claim applies to the environment, which is for its package alone if it has one."""
        return super().covers(environment) and environment.is_for(self.package)


class CellRule(EnvironmentSelector):
    """Some cells of a source (all of them, where nothing narrows it), and why."""

    device: Device | None = None
    solution: Text | None = None
    reason: Text

    def matches(self, environment: Environment, device: str, solution: str) -> bool:
        """Return whether the rule applies to the cell with this environment, device and solution."""
        has_no_range = self.stock is None and self.ngc is None and self.framework in ("", environment.framework)
        return (
            (has_no_range or self.covers(environment))
            and self.device in (None, device)
            and self.solution in (None, solution)
        )


_MINORS: Final = [f"{major}.{minor}" for major in (1, 2) for minor in range(100)]


class BuildNote(StrictModel):
    """What was found out by hand about builds of some versions."""

    stock: Range
    note: Text
    cite: list[Text] = Field(min_length=1, description="file and line of the framework's source, or what was run")


class ReachabilityNote(BuildNote):
    """How the op comes to run these kernels with the arguments of the title; checked by hand."""

    ops: dict[str, list[Text]] = Field(
        min_length=1,
        description="op types, and the dtypes with which they run them: a build must register one for GPUs",
    )


class SourceAudit(StrictModel):
    """Where a source shows in the binaries; `tfdet audit` reads them.

    Patterns match a kernel's demangled name from its start, template arguments included, without return type and
    function arguments.
    """

    kernels: list[Pattern] = Field(default=[], description="the kernels of this source")
    kernels_of_this_op: Pattern | None = Field(
        default=None, description="those of them that the op itself runs, where their file serves other ops too"
    )
    deterministic: list[Pattern] = Field(
        default=[], description="families that came beside them and need no such atomics"
    )
    ops: list[Text] | None = Field(default=None, description="op types whose kernels they are; absent: all of raw_ops")
    messages: Pattern | None = Field(default=None, description="found anywhere in a message by which the ops refuse")
    family: Pattern | None = Field(
        default=None,
        description="the family under which builds keep those that hold no atomics, if kernels names variants",
    )
    unauditable_reason: str = Field(default="", description="what the audit cannot see of this source")
    reachable_notes: list[ReachabilityNote] = Field(
        default=[], description="absent: whether the op reaches the kernels is not known"
    )
    unreachable_notes: list[BuildNote] = Field(
        default=[], description="why the op never runs the kernels with the arguments of the title"
    )

    @model_validator(mode="after")
    def _check_overlaps(self) -> SourceAudit:
        texts = [entry.stock for entry in [*self.reachable_notes, *self.unreachable_notes]]
        for version in _MINORS:
            if sum(ranges.contains(text, version) for text in texts) > 1:
                raise ValueError(f"reachable_notes and unreachable_notes: two entries cover {version}")
        return self

    @model_validator(mode="after")
    def _check_not_empty(self) -> SourceAudit:
        if not self.kernels and not self.unauditable_reason:
            raise ValueError("an [audit] table has patterns of kernels, or says what the audit is blind to")
        return self


SourceGroup = Literal[
    "gpu-confirmed", "gpu-historic", "gpu-possible", "gpu-later", "gpu-candidate", "not-gpu", "beyond", "op"
]
_SOURCE_GROUPS: Final[tuple[SourceGroup, ...]] = get_args(SourceGroup)


def _inherit(content: Any, names: tuple[str, ...], keys: tuple[str, ...] = ("framework",)) -> Any:
    """Return the content of a file with the values of `keys` copied into its tables `names`."""
    if not isinstance(content, dict):
        return content
    inherited = {key: content[key] for key in keys if key in content}
    changes: dict[str, Any] = {}
    for name in names:
        part = content.get(name)
        if isinstance(part, dict):
            changes[name] = inherited | part
        elif isinstance(part, list):
            changes[name] = [inherited | table if isinstance(table, dict) else table for table in part]
    return content | changes


class Source(StrictModel):
    """A source of nondeterminism as users know it."""

    framework: FrameworkKey = ""
    title: Text
    group: SourceGroup
    order: int = Field(description="row order within its group")
    upstream_row: str = Field(default="", description="the row or file name in the seed document")
    api: Text
    calls: Calls | None = Field(
        default=None,
        description="by which a program reaches it; [] where it shows by none; absent: api is the one name",
    )
    direction: Text
    devices: list[Device] = Field(min_length=1)
    condition: str = ""
    raw_ops: list[Text] = Field(default=[])
    kernels: list[Text] = Field(default=[])
    notes: str = ""
    workaround: str = ""
    package: Text | None = Field(
        default=None, description="beside the framework: it runs in the environments for that package alone"
    )
    cite: list[Text] = Field(min_length=1)
    try_solutions: list[Text] = Field(default=[], description="solutions to run beside the general ones")
    audit: SourceAudit | None = None
    emulation: list[BuildNote] = Field(
        default=[], description="why the virtual GPU shows what the audit does not, or not what it does"
    )
    claims: list[Claim] = Field(default=[])
    exclude: list[CellRule] = Field(default=[], description="cells that are not run")
    known_failures: list[CellRule] = Field(
        default=[], description="cells in which the framework is known to crash: recorded, but no failure of the run"
    )

    @model_validator(mode="before")
    @classmethod
    def _of_its_framework(cls, content: Any) -> Any:
        content = _inherit(content, ("exclude", "known_failures"))
        return _inherit(content, ("claims",), ("framework", "package"))

    @model_validator(mode="after")
    def _check_calls(self) -> Source:
        if self.calls is None and as_dotted_name(self.api) is None:
            raise ValueError("api is not one name alone: calls has to say by which a program reaches it ([]: by none)")
        return self

    @property
    def call_patterns(self) -> list[tuple[str, CallPattern]]:
        return list(patterns_by_name([self.api] if self.calls is None else self.calls))

    @property
    def sort_key(self) -> tuple[int, int]:
        """Return the sort key among all sources: the position of the group, then the row in it."""
        return _SOURCE_GROUPS.index(self.group), self.order


# The calls that the probe's adapters can make to apply a solution.
Call = Literal[
    "enable_op_determinism", "keras_set_random_seed", "patch", "enable_determinism",
    "use_deterministic_algorithms", "use_deterministic_algorithms_warn_only", "cudnn_deterministic",
]  # fmt: skip


class SolutionSteps(StrictModel):
    """How the probe applies a solution inside a fresh process."""

    env: dict[str, str] = Field(default={})
    call: Call | None = None
    seed: int | None = None
    threads: int | None = Field(default=None, ge=1)
    options: dict[str, int] = Field(default={}, description="what a case reads by make.option(name, default)")


class Solution(StrictModel):
    """What makes a source deterministic."""

    framework: FrameworkKey = ""
    name: Text
    description: Text
    order: int
    seed: bool = Field(default=False, description="in the key of the seed documents")
    applies_to_all_ops: bool = Field(default=False, description="tried on every source")
    is_project_patch: bool = Field(
        default=False, description="made by this project: documents of others do not know it"
    )
    devices: list[Device] = Field(default=["gpu", "cpu"])
    available: EnvironmentSelector = EnvironmentSelector.model_construct(
        stock=">=0", ngc=">=0"
    )  # without validation, which would build the model at import
    apply: SolutionSteps | None = Field(default=None, description="absent: nothing to run")
    skip_reason: str = Field(default="", description="why it is not run although documents name it")
    switch: list[Calls] = Field(
        default=[],
        description="steps that switch it on in a program, beside its variables: of each one call or setting",
    )
    includes: list[Text] = Field(default=[], description="solutions whose effect this one has too")
    recipe: list[Text] = Field(default=[], description="lines of Python for a user's program")
    condition: str = Field(default="", description="what a user must know or do for it to have an effect")
    notes: str = ""
    cite: list[Text] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _of_its_framework(cls, content: Any) -> Any:
        return _inherit(content, ("available",))

    @model_validator(mode="after")
    def _check_apply(self) -> Solution:
        if (self.apply is None) == (not self.skip_reason):
            raise ValueError("a solution has either [apply] or a reason skip_reason")
        if self.apply and self.apply.call and not self.switch:
            raise ValueError("a call applies it: switch has to say by which a program does")
        return self
