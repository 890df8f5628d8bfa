"""The table at the end of a run, which leaves out uninteresting sources if there are many."""

from tfdet_common.defaults import MAX_TABLE_ROWS
from tfdet_probe.core import report


def record(source, solution, observation, case="eager"):
    """Return the fields of a record that the table shows."""
    return {"source": source, "case": case, "solution": solution, "observation": observation,
            "runs": 20, "differed": 4 if observation == "differs" else 0}  # fmt: skip


FEW = [record("a", "none", "differs"), record("a", "TDO", "equal"), record("b", "none", "equal")]
MANY = [*FEW, record("c", "TDO", "crashed")]
MANY += [record(f"quiet-{n}", "none", "equal") for n in range(MAX_TABLE_ROWS)]


def sources(text):
    """Return the sources of the table's rows."""
    return [line.split()[0] for line in text.splitlines()[1:]]


def test_a_table_has_a_row_a_source():
    assert sources(report.result(FEW, False)) == ["a", "b"]
    assert len(sources(report.result(MANY, True))) == MAX_TABLE_ROWS + 3


def test_of_many_sources_only_interesting_ones_are_shown():
    *rows, hidden_count = sources(report.result(MANY, False))
    assert rows == ["a", "c"]
    assert hidden_count == str(MAX_TABLE_ROWS + 1), "how many are left out"
    assert sources(report.result(MANY[:2] + MANY[3:], False))[:2] == ["a", "c"]


def test_a_table_without_differences_says_so():
    (line,) = report.result([r for r in MANY if r["observation"] == "equal"], False).splitlines()
    assert line.split()[0] == str(MAX_TABLE_ROWS + 2)
