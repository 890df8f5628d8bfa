"""What a record says that cannot be true, by rules of its own: from the TOML files and the stored records alone."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CALLER_VARIABLES = {"TF_ENABLE_ONEDNN_OPTS"}
DEVICES = r"cpu|vgpu-sm(70|80|90)|nvidia-[a-z0-9.-]+"
ENGINES = ("venv", "docker", "apptainer", "enroot", "bundle", "none")
SCHEDULE = r"serial|reverse|exchange|lanes|(random|adversary|atomics|pct):[0-9,]+(@[0-9:,-]+)?"
Content = dict[str, Any]


@dataclass(frozen=True)
class Facts:
    """What the matrix says: {key: content of a file}, its framework added; and {hash: (source, case, mode) seen}."""

    environments: dict[str, Content]
    sources: dict[str, Content]
    solutions: dict[str, Content]
    cases: dict[str, set[tuple[str, str, str]]]
    unplaced: set[str]  # hashes of cases that ran and name no place
    ranked: set[str]  # hashes of cases of several processes

    def source(self, key: str) -> Content:
        """Return a source; one without a file is an op of the framework that its key begins with."""
        return self.sources.get(key, {"framework": key.split("-")[0], "devices": ["gpu", "cpu"]})

    @classmethod
    def of(cls, matrix: Path) -> Facts:
        cases: dict[str, set[tuple[str, str, str]]] = {}
        unplaced, ranked = set(), set()
        for path in sorted(matrix.glob("evidence/*/*.jsonl")):
            for record in map(json.loads, path.read_text("ascii").splitlines()):
                code = record["case_hash"]
                cases.setdefault(code, set()).add((record["source"], record["case"], record["mode"]))
                if record["runs"] and not record["ran_on"]:
                    unplaced.add(code)
                if record.get("ranks"):
                    ranked.add(code)
        environments, sources, solutions = (_tables(matrix / name) for name in ("environments", "sources", "solutions"))
        return cls(environments, sources, solutions, cases, unplaced, ranked)


def _tables(folder: Path) -> dict[str, Content]:
    paths = [*folder.glob("*.toml"), *folder.glob("*/*.toml")]
    frameworks = {path: path.parent.name if path.parent != folder else "" for path in paths}
    return {path.stem: {"framework": frameworks[path], **tomllib.loads(path.read_text("utf-8"))} for path in paths}


def falsehoods(facts: Facts, record: Content) -> list[str]:
    """Return what a record says that no run can have given."""
    rules = (_counts, _results, _failure, _times, _device, _case, _settings, _place, _ranks, _proof)
    return [text for rule in rules for text, is_false in rule(facts, record) if is_false]


_Rule = Iterator[tuple[str, bool]]  # (what is false, whether the record says it)


def _counts(_: Facts, record: Content) -> _Rule:
    """A case runs `repeats` times in each of `relaunches` processes."""
    runs, repeats, relaunches = record["runs"], record["repeats"], record["relaunches"]
    yield "more runs than there can be", not 0 <= runs <= repeats * relaunches
    yield "no repeats", not (repeats > 0 and relaunches > 0)
    yield "a part of a process", runs % max(repeats, 1) != 0
    yield "more differing runs than runs", not 0 <= record["differed"] <= runs
    yield "more results than runs", record["distinct"] > record["differed"] + 1


def _results(_: Facts, record: Content) -> _Rule:
    digests, differed = record["digests"], record["differed"]
    yield "a digest twice", len(set(digests)) < len(digests)
    yield "digests of no results", len(digests) != min(record["distinct"], 4)  # a record keeps at most four
    yield "results of no run", (record["runs"] > 0) != (record["distinct"] > 0)
    yield "equal with several results", record["observation"] == "equal" and (differed > 0 or len(digests) != 1)
    yield "differs with one result", record["observation"] == "differs" and (differed == 0 or len(digests) < 2)
    yield "several results, and no run differs", record["distinct"] > 1 and not differed
    yield "a first difference", (record["first_differing"] is not None) != (differed > 0)
    if first := record["first_differing"]:
        yield "a first difference beyond", first["repeat"] >= record["repeats"]
        yield "a first process beyond", first["relaunch"] * record["repeats"] >= record["runs"]
    yield "a distance of nothing", not differed and (record["max_ulp"] or record["max_absolute"]) not in (0, 0.0)


def _failure(_: Facts, record: Content) -> _Rule:
    error, is_complete = record["error"], record["runs"] == record["repeats"] * record["relaunches"]
    yield "an error of nothing, or none", (error is None) != is_complete
    if record["observation"] not in ("equal", "differs"):
        yield "another error", error is None or error["kind"] != record["observation"]
        yield "no result that differs", record["differed"] > 0
    yield "equal in spite of an error", record["observation"] == "equal" and error is not None


def _times(_: Facts, record: Content) -> _Rule:
    median = record["median_seconds"]
    yield "timed without a run", (median is not None) != (record["runs"] > 0)
    yield "before the oldest TensorFlow", record["started"] < "2019-02-26"
    yield "after next year", record["started"] > "2099"
    yield "longer than a year", not 0 <= record["duration_seconds"] < 3.2e7
    yield "shorter than two of its runs", (median or 0) * min(record["repeats"], 2) / 2 > record["duration_seconds"] + 1


def _device(_: Facts, record: Content) -> _Rule:
    device, stack = record["device"], record["stack"]
    kind, gpu = device["kind"], stack["gpu"]
    yield "a device that does not exist", not re.fullmatch(DEVICES, device["model"])
    yield "another kind", device["model"].split("-")[0] != kind
    placement = "CPU:" if kind == "cpu" else "GPU:"
    yield "it ran elsewhere", any(not place.startswith(placement) for place in record["ran_on"])
    yield "it ran nowhere", bool(record["ran_on"]) and not record["runs"]
    yield "a card of no card", (gpu is not None) != (kind == "nvidia")
    yield (
        "another card",
        gpu is not None and gpu.lower().replace(" ", "-").removeprefix("nvidia-") not in device["model"],
    )
    yield "a driver of nothing", stack["driver"] is not None and kind != "nvidia"
    yield "details of nothing", bool(device.get("details")) != (kind == "vgpu")
    yield "a compute capability of nothing", (stack["compute_capability"] is not None) != (kind == "nvidia")
    yield "a state of no card", kind != "nvidia" and bool(record.get("gpu_state") or record.get("kernels"))
    yield "a card's number of no card", kind != "nvidia" and stack["gpu_uuid_hash"] is not None
    yield "twice at a place", len(set(record["ran_on"])) < len(record["ran_on"])
    yield "no cores", stack["cores"] < 1
    yield "an engine that does not exist", stack["engine"] not in ENGINES
    yield "no Python", not re.fullmatch(r"[23]\.\d+\.\d+[a-z0-9+]*", stack["python"])
    yield "no NumPy", not re.fullmatch(r"\d+\.\d+[a-z0-9.+]*", stack["numpy"])
    yield "no version of a framework", not re.fullmatch(r"\d+\.\d+[a-z0-9.+-]*", record["framework"]["version"])
    yield "an image of a virtual environment", stack["engine"] == "venv" and stack["image_digest"] is not None
    yield "a bundle of nothing", (stack["engine"] == "bundle") != (stack.get("bundle") is not None)


def _case(facts: Facts, record: Content) -> _Rule:
    seen = facts.cases.get(record["case_hash"])
    yield "another's case", seen is not None and (record["source"], record["case"], record["mode"]) not in seen
    if seen is not None:
        is_placed = record["case_hash"] not in facts.unplaced
        yield "it ran at no place", record["runs"] > 0 and not record["ran_on"] and is_placed
        yield "ranks of one process", bool(record.get("ranks")) and record["case_hash"] not in facts.ranked


def _settings(facts: Facts, record: Content) -> _Rule:
    solution, environment = facts.solutions[record["solution"]], facts.environments[record["environment"]]
    apply = solution.get("apply")
    variables = {k: v for k, v in record["determinism_environment"].items() if k not in CALLER_VARIABLES}
    yield "a solution that is never run", apply is None
    if apply is not None:
        yield "other settings than its solution's", variables != apply.get("env", {})
        yield "other threads than its solution's", record["threads"] != apply.get("threads", 0)
    frameworks = {solution["framework"], environment["framework"], facts.source(record["source"])["framework"]}
    yield "of several frameworks", len(frameworks - {""}) != 1
    yield "another framework ran", record["framework"]["name"] != environment["framework"]
    version = record["framework"]["version"]
    if environment["line"] == "stock":
        yield "another version ran", not f"{version}.".startswith(environment["framework_version"].split("+")[0] + ".")


def _place(facts: Facts, record: Content) -> _Rule:
    """What no plan contains, as it is not there."""
    device = "cpu" if record["device"]["kind"] == "cpu" else "gpu"
    solution, source = facts.solutions[record["solution"]], facts.source(record["source"])
    environment = facts.environments[record["environment"]]
    yield "a source of another device", device not in source["devices"]
    yield "a solution of another device", device not in solution.get("devices", ["gpu", "cpu"])
    yield "a package that is not there", source.get("package") != environment.get("package")
    stock = solution.get("available", {}).get("stock", ">=0")
    if environment["line"] == "stock":
        yield "a solution of a later version", not _in_range(environment["version"], stock)


def _in_range(version: str, text: str) -> bool:
    """Return whether a version is in a range such as `>=1.14, <2.9`."""
    number = _number(version)
    for bound in text.split(","):
        operator, of = re.fullmatch(r"\s*(>=|<=|<|>|==)\s*([\d.]+)\s*", bound).groups()  # type: ignore[union-attr]
        limit = _number(of)
        answers = {">=": number >= limit, "<=": number <= limit, "<": number < limit, ">": number > limit}
        if not answers.get(operator, number == limit):
            return False
    return True


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in (version + ".0").split(".")[:2])


def _ranks(_: Facts, record: Content) -> _Rule:
    if ranks := record.get("ranks"):
        yield "not a count for each rank", len(ranks["differed"]) != ranks["number"]
        yield "more agreement than runs", ranks["agreed"] > record["runs"]
        yield "ranks that differ in other runs", max(ranks["differed"], default=0) > record["differed"]
        yield "no rank differed", record["differed"] > sum(ranks["differed"])


def _proof(_: Facts, record: Content) -> _Rule:
    """`host` lists operations of the host that prevent a proof."""
    if proof := record.get("proof"):
        yield "no schedule", not all(re.fullmatch(SCHEDULE, text) for text in proof["observed"])
        yield "a proof on no virtual GPU", record["device"]["kind"] != "vgpu"
        is_proved = not proof["host"] and all(kernel["proved"] == kernel["launches"] for kernel in proof["kernels"])
        yield "proved, and it differs", is_proved and record["differed"] > 0
        yield "more proved than launched", any(kernel["proved"] > kernel["launches"] for kernel in proof["kernels"])
        yield "a proof of nothing", not proof["kernels"] and not proof["host"]
