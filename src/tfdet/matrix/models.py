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
NONE = "none"  # key of the solution of controls: nothing is done against nondeterminism


def _validate_driver(text: str) -> str:
    """Return the text; ValueError if it does not begin with a version, which checks can compare."""
    if text != UNKNOWN and ranges.leading_version(text) is None:
        raise ValueError(f"{text!r} does not begin with a number; use {UNKNOWN!r} for an uncited fact")
    return text


class TableColumn(StrictModel):
    """A column of the GPU tables, with the ranges of versions that it covers."""

    title: Text
    stock: Range | None = None
    ngc: Range | None = None


class Framework(StrictModel):
    """A framework: its packages, its names and its tables."""

    name: Text
    package: Text = Field(
        description="the module that a program imports; also the name, or the prefix, of its requirements"
    )
    lines: dict[Literal["stock", "ngc"], Text] = Field(
        description="{stock (builds of the framework's project) or ngc (builds of NVIDIA): its name in tables}"
    )
    variables: list[Text] = Field(
        default=[], description="environment variables that affect determinism and that no solution sets"
    )
    published: bool = Field(
        default=False, description="whether its tables are in README.md and docs, and its library is shipped"
    )
    columns: list[TableColumn] = Field(default=[], description="columns of the GPU tables")
    page: Text | None = Field(
        default=None, description="the page in docs/reference that shows the framework's own lists of ops"
    )
    library: Text | None = Field(
        default=None,
        description="subpackage of tfdeterminism for this framework; absent: tfdeterminism itself, or none",
    )
    recipe: list[Text] = Field(
        default=[], description="solutions whose recipes, in this order, form the recipe of the framework"
    )
    virtual_gpu_packages: list[Text] = Field(
        default=[],
        description="name prefixes of NVIDIA packages that the virtual GPU needs, too; they work without a GPU",
    )
    naming: ApiNames | None = Field(
        default=None, description="names by which programs call it; absent: its programs are not checked"
    )
    cite: list[Text] = Field(min_length=1)


# The folder of a file gives the framework of its entry; the file itself never contains the framework.
FrameworkKey = Annotated[str, Field(description='the folder that the file lies in; "": any framework')]


class CompiledPackages(StrictModel):
    """Packages without wheels, which are compiled against the framework after all other packages are installed."""

    packages: list[Text] = Field(min_length=1, description="names in the lock files")
    tools: list[Text] = Field(min_length=1, description="commands that must be on PATH")
    variables: dict[str, str] = Field(default={}, description="environment variables for the build")
    conflicts: dict[str, Text] = Field(
        default={}, description="{command: why the build fails if this command is on PATH}"
    )


class PipRequirements(StrictModel):
    """How pip builds a stock environment, in a venv or an image."""

    python: Text = Field(description="minor version of CPython")
    cpu: Text = Field(description="requirement of the CPU build")
    gpu: Text = Field(description="requirement of the GPU build")
    code: Text = Field(
        default="",
        description="requirement of the package that contains the GPU code, if `gpu` only depends on that package",
    )
    constraints: list[Text] = Field(
        default=[], description="version constraints without which the framework cannot be imported or does not work"
    )
    extra_requirements: list[Text] = Field(
        default=[], description="packages that the suite imports in addition to the framework, NumPy and pytest"
    )
    compiled: CompiledPackages | None = None


class Environment(StrictModel):
    """One pinned software stack. The value `unknown` stands for a fact without a citation."""

    framework: FrameworkKey = ""
    line: Literal["stock", "ngc"] = Field(description="who built it: the framework's project, or NVIDIA (NGC)")
    version: Version = Field(
        description="the version in claims: the framework's minor version (stock), or the image's version (ngc)"
    )
    framework_version: Text = Field(description="version of the framework's package")
    image: Text = Field(description="repository:tag")
    digest: Text
    python: Text = Field(description="version of Python in the image")
    os: Text
    cuda: Text
    cudnn: Text
    min_driver: Annotated[Text, AfterValidator(_validate_driver)]
    cuda_arch: Text
    pip: PipRequirements | None = None
    skip_reason: Text | None = Field(default=None, description="why the suite cannot run there")
    package: Text | None = Field(
        default=None, description="additional package; the environment is for sources of this package only"
    )
    notes: str = ""
    cite: list[Text] = Field(min_length=1)

    def is_for(self, package: str | None) -> bool:
        """Return whether the environment is for sources of this package.  None: sources of the framework itself."""
        return self.package in (None, package)

    @model_validator(mode="after")
    def _check_pip(self) -> Environment:
        if (self.line == "stock") != (self.pip is not None):
            raise ValueError("a stock environment has a [pip] table, an ngc one has none")
        return self


class EnvironmentSelector(StrictModel):
    """A selection of environments by framework, line and range of versions."""

    framework: FrameworkKey = ""
    stock: Range | None = None
    ngc: Range | None = None
    framework_version: Range | None = Field(
        default=None,
        description="range of the framework's own version, if known: an NGC release can have a tf1 and a tf2 image",
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
    """A statement of cited documents about a source in some environments."""

    package: Text | None = Field(default=None, description="package of the source; copied from the source's file")
    device: Device = "gpu"
    solutions: list[Text] = Field(min_length=1, description="solutions to which the claim applies, each on its own")
    # no-solution: documents say that there is no solution.
    outcome: Literal["deterministic", "nondeterministic", "raises", "no-solution"]
    except_cases: list[Text] = Field(default=[], description="cases to which the claim does not apply")
    partly: bool = Field(default=False, description="whether only some calls raise; the others may be deterministic")
    note: str = ""
    cite: list[Text] = Field(min_length=1)

    @model_validator(mode="after")
    def _check_range(self) -> Claim:
        if self.stock is None and self.ngc is None:
            raise ValueError("a claim needs a range: stock, ngc or both")
        return self

    def covers(self, environment: Environment) -> bool:
        """Return whether the claim's ranges contain the environment, and the environment is for the claim's package."""
        return super().covers(environment) and environment.is_for(self.package)


class CellRule(EnvironmentSelector):
    """A rule for the cells of a source that match all given fields, with its reason."""

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
    """A manual finding about the builds of some versions."""

    stock: Range
    note: Text
    cite: list[Text] = Field(
        min_length=1, description="file and line of the framework's source, or the program that was run"
    )


class ReachabilityNote(BuildNote):
    """A manual finding that an op executes the kernels of a source when it is called as in the source's title."""

    ops: dict[str, list[Text]] = Field(
        min_length=1,
        description="{op type: dtypes with which it executes the kernels}; a build must register one of them for GPUs",
    )


class SourceAudit(StrictModel):
    """The traces of a source in shipped binaries, for which `tfdet audit` searches.

    A pattern must match from the start of a kernel's demangled name. The name includes template arguments, but not
    the return type and the function arguments.
    """

    kernels: list[Pattern] = Field(default=[], description="the kernels of this source")
    kernels_of_this_op: Pattern | None = Field(
        default=None,
        description="pattern of the kernels that this op executes, if `kernels` also matches kernels of other ops",
    )
    deterministic: list[Pattern] = Field(
        default=[], description="kernel families that were added beside `kernels` and need no order-dependent atomics"
    )
    ops: list[Text] | None = Field(default=None, description="op types that own the kernels; absent: all of raw_ops")
    messages: Pattern | None = Field(
        default=None, description="pattern to search for in the messages with which the ops raise"
    )
    family: Pattern | None = Field(
        default=None,
        description="name, without template arguments, of this source's kernels that have no atomics; needed if the "
        "patterns in `kernels` contain template arguments",
    )
    unauditable_reason: str = Field(default="", description="what the audit cannot detect of this source")
    reachable_notes: list[ReachabilityNote] = Field(
        default=[], description="why the op executes the kernels; absent: not known"
    )
    unreachable_notes: list[BuildNote] = Field(
        default=[], description="why the op, called as in the title, never executes the kernels"
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


# The table of the status pages in which a source stands; tfdet.publish.tables.GROUPS has the titles.
# possible: files that call atomicAdd; later: named by later documents; candidate: found in binaries alone; not-gpu: has
# nothing to do with a GPU; beyond: in other libraries; op: ops for which the framework ships sample inputs.
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
    """A known source of nondeterminism, in terms of the framework's API."""

    framework: FrameworkKey = ""
    title: Text
    group: SourceGroup
    order: int = Field(description="position of its row within the group")
    upstream_row: str = Field(
        default="",
        description="its row or file name in the seed documents: those of NVIDIA's package tensorflow-determinism",
    )
    api: Text
    calls: Calls | None = Field(
        default=None,
        description="calls by which a program reaches the source; []: no call shows it; absent: api is the only name",
    )
    direction: Text  # what is nondeterministic, such as "forward" or "backprop to bias"
    devices: list[Device] = Field(min_length=1)
    condition: str = ""  # when it is nondeterministic, such as dtypes, shapes or versions
    raw_ops: list[Text] = Field(default=[])
    kernels: list[Text] = Field(default=[])
    notes: str = ""
    workaround: str = ""
    package: Text | None = Field(
        default=None, description="package that the source needs; it runs only in the environments for this package"
    )
    cite: list[Text] = Field(min_length=1)
    try_solutions: list[Text] = Field(default=[], description="solutions to run in addition to those for all sources")
    audit: SourceAudit | None = None
    emulation: list[BuildNote] = Field(
        default=[], description="why the virtual GPU and the audit disagree about this source"
    )
    claims: list[Claim] = Field(default=[])
    exclude: list[CellRule] = Field(default=[], description="cells that are not run")
    known_failures: list[CellRule] = Field(
        default=[],
        description="cells in which the framework is known to crash; they are recorded, and the run does not fail",
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
    seed: int | None = Field(
        default=None, description="seed that the probe gives to all random generators before each repeat"
    )
    threads: int | None = Field(default=None, ge=1)
    options: dict[str, int] = Field(default={}, description="options that a case reads by make.option(name, default)")


class Solution(StrictModel):
    """What makes a source deterministic."""

    framework: FrameworkKey = ""
    name: Text
    description: Text
    order: int
    # The key is the legend of the tables.  The field has nothing to do with a random seed.
    seed: bool = Field(default=False, description="whether the key of the seed documents' tables lists it")
    applies_to_all_ops: bool = Field(default=False, description="whether it is tried on every source")
    is_project_patch: bool = Field(
        default=False, description="whether it is part of this project, so that no other document mentions it"
    )
    devices: list[Device] = Field(default=["gpu", "cpu"])
    available: EnvironmentSelector = EnvironmentSelector.model_construct(
        stock=">=0", ngc=">=0"
    )  # without validation, which would build the model at import
    apply: SolutionSteps | None = Field(default=None, description="absent: nothing to run")
    skip_reason: str = Field(default="", description="why it is not run although documents mention it")
    switch: list[Calls] = Field(
        default=[],
        description="steps that enable it in a program beside its variables; each step lists alternative calls",
    )
    includes: list[Text] = Field(default=[], description="solutions whose effect is part of this one")
    recipe: list[Text] = Field(default=[], description="lines of Python to add to a user's program")
    condition: str = Field(default="", description="what a user must know or do so that the solution has an effect")
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
