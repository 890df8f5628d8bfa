"""The pages of audited builds, and of the changes from each build to the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from tfdet.audit.capability import capabilities
from tfdet.publish.audit_tables import AuditTables
from tfdet.publish.terminal_views import AUDIT_BLIND_SPOTS
from tfdet.site.page import Page
from tfdet.site.site_facts import SiteFacts
from tfdet.site.urls import cell_page_path
from tfdet.verdicts.audit_findings import count_by_family
from tfdet.verdicts.build_diff import diff_builds


def pages(facts: SiteFacts) -> Iterator[Page]:
    tables = AuditTables(facts.status)
    builds = tables.builds()
    environments = facts.matrix.environments
    pairs = [
        (old, new) for old, new in pairwise(tables.keys) if environments[old].framework == environments[new].framework
    ]
    yield Page(
        path="builds/index",
        kind="builds",
        title="Audited builds",
        description=(
            "What the shipped binaries of each build hold: GPU kernels whose result depends on the order of threads."
        ),
        data={"builds": [asdict(build) for build in builds], "changes": [f"{old}-to-{new}" for old, new in pairs]},
        template_data={"pairs": pairs},
    )
    for build in builds:
        yield _page(facts, build.key, asdict(build), pairs)
    for old, new in pairs:
        yield _change(facts, old, new)


def _page(facts: SiteFacts, key: str, build: dict[str, Any], pairs: list[tuple[str, str]]) -> Page:
    audited = facts.status.audits[key]
    stored = audited.stored
    capability_list = capabilities(stored.architectures["sass"], stored.architectures["ptx"])
    data = {
        **{("kernels_read" if name == "kernels" else name): value for name, value in build.items()},
        "wheel": stored.wheel.model_dump(mode="json") if stored.wheel else None,
        "capability": [{"compute": "{}.{}".format(*capability.compute), "gpus": capability.gpus,
                        "runs": capability.run_mode, "by": capability.arch} for capability in capability_list],
        "sources": [{"source": source, "title": facts.matrix.sources[source].title, **finding.as_json(),
                     "address": _address(facts, key, source)}
                    for source in facts.sources if facts.may_have_op(key, source)
                    if (finding := facts.status.finding(key, source)) and finding.kind != "not shipped"],
        "families": count_by_family(row for row in audited.rows if row.kernel.verdict == "yes"),
        "without_source": count_by_family(audited.kernels_without_source(facts.matrix.sources.values())),
        "environment_variables": stored.environment_variables,
        "messages": stored.messages,
        "registered": len(stored.registrations) if stored.registrations is not None else None,
        "changes": [f"{old}-to-{new}" for old, new in pairs if key in (old, new)],
    }  # fmt: skip
    return Page(
        path=f"builds/{key}",
        kind="build",
        title=f"Audit of {key}",
        description=f"Which GPU kernels of {key} add floats in the order in which threads come.",
        data=data,
        template_data={"not_seen": AUDIT_BLIND_SPOTS},
    )


def _change(facts: SiteFacts, old: str, new: str) -> Page:
    diff = diff_builds(facts.status.audits[old], facts.status.audits[new], facts.matrix.sources)
    titles = {key: facts.matrix.sources[key].title for key in diff.sources}
    return Page(
        path=f"builds/{old}-to-{new}",
        kind="change",
        title=f"From {old} to {new}",
        description=f"What appeared and what went between the GPU kernels of {old} and {new}.",
        data=diff.as_json(),
        template_data={"titles": titles},
    )


def _address(facts: SiteFacts, environment: str, source: str) -> str:
    """Return the address of the page of a source in an environment, or of the source if no cell exists there."""
    return (
        cell_page_path(environment, source)
        if (environment, source) in facts.cells_by_page
        else f"sources/{source}.html"
    )
