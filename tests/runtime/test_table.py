"""The table of recipes has no gap and no overlap, and agrees with the matrix's solutions."""

from __future__ import annotations

import pytest

from tfdet.base.paths import Project
from tfdet.matrix.load import Matrix, load_matrix
from tfdet.matrix.models import NONE, Environment, Source
from tfdet.verdicts import remaining_sources
from tfdeterminism import recipes


@pytest.fixture(scope="module")
def matrix(checkout: Project) -> Matrix:
    return load_matrix(checkout.matrix).for_published_framework


@pytest.mark.parametrize("kind", ["stock", "ngc"])
def test_each_version_has_one_row(matrix: Matrix, kind: str) -> None:
    versions = {remaining_sources.build_of(e)[1] for e in matrix.environments.values() if e.line == "stock"}
    for version in versions:
        rows = [row for row in recipes.RECIPES if row.covers(kind, version)]
        assert rows == [recipes.recipe_for(kind, version)], version


def test_a_version_outside_of_the_table_gets_the_nearest_row() -> None:
    assert recipes.recipe_for("stock", (3, 0)) is recipes.recipe_for("stock", recipes.NEWEST_TENSORFLOW)
    assert recipes.recipe_for("stock", (1, 4)) is recipes.recipe_for("stock", recipes.OLDEST_TENSORFLOW)
    assert recipes.patches_for("stock", (1, 12)) == []
    assert recipes.patches_for("stock", (2, 99)) == recipes.patches_for("stock", recipes.NEWEST_TENSORFLOW)


def test_the_newest_version_is_that_of_the_matrix(matrix: Matrix) -> None:
    versions = {remaining_sources.build_of(e)[1] for key, e in matrix.environments.items() if e.line == "stock"}
    assert (min(versions), max(versions)) == (recipes.OLDEST_TENSORFLOW, recipes.NEWEST_TENSORFLOW)
    assert remaining_sources.newest(matrix) == recipes.NEWEST_TENSORFLOW


def test_a_newer_version_has_the_newest_row() -> None:
    """A new version requires no new row."""
    newer = (recipes.NEWEST_TENSORFLOW[0], recipes.NEWEST_TENSORFLOW[1] + 1)
    assert recipes.recipe_for("stock", newer).covers("stock", newer)
    assert recipes.recipe_for("stock", newer).name_for(newer).endswith(f" to {recipes.as_text(newer)}")


@pytest.mark.parametrize("row", recipes.RECIPES, ids=lambda row: row.name)
def test_a_row_does_what_its_solution_says(matrix: Matrix, row: recipes.Recipe) -> None:
    if row.solution is None:
        assert (row.environment, row.call) == ((), None)
        return
    parts = [matrix.solutions[key].apply for key in remaining_sources.expand_includes(matrix, row.solution)]
    settings = matrix.solutions[row.solution].apply
    assert settings is not None
    if row.solution == "TDP":  # patch() sets what TCD sets: TF_CUDNN_DETERMINISTIC=1
        assert dict(row.environment) == {k: v for part in parts if part for k, v in part.env.items()}
    else:
        assert (dict(row.environment), row.call) == (settings.env, settings.call)
    for version in (row.first, row.last or recipes.NEWEST_TENSORFLOW):
        somewhere = [
            e for key, e in matrix.environments.items() if remaining_sources.build_of(e) == (row.kind, version)
        ]
        assert all(matrix.solutions[row.solution].available.covers(e) for e in somewhere), version


def test_no_claim_names_a_better_solution(matrix: Matrix) -> None:
    """The claims must not contradict the table, which does not read them."""
    for key, environment in matrix.environments.items():
        chosen = remaining_sources.recipe_of(environment).solution
        helped = {
            name: sum(
                _is_claimed_deterministic(source, environment, remaining_sources.expand_includes(matrix, name))
                for source in matrix.sources.values()
            )
            for name, solution in matrix.solutions.items()
            if (solution.applies_to_all_ops or solution.includes)
            and not solution.is_project_patch
            and name != NONE
            and solution.available.covers(environment)
        }
        best = max(helped.values())
        assert not best if chosen is None else helped[chosen] == best, (key, chosen, helped)


def _is_claimed_deterministic(source: Source, environment: Environment, effects: set[str]) -> bool:
    claims = [c for c in source.claims if c.device == "gpu" and c.outcome == "deterministic" and c.covers(environment)]
    return any(effects & set(claim.solutions) for claim in claims)


def test_each_patch_serves_sources_of_the_matrix(matrix: Matrix) -> None:
    for key, patch in recipes.PATCHES.items():
        assert patch.key == key
        assert patch.sources
        assert set(patch.sources) <= set(matrix.sources), key
