"""The symbol of each verdict, for all tables: on terminals, in README.md and in docs."""

from __future__ import annotations

from tfdet.verdicts.infer import InferredCell, Verdict

SYMBOLS = {
    Verdict.NONDETERMINISTIC: "✗",
    Verdict.SCHEDULE_INDEPENDENT: "∎",  # proved
    Verdict.DETERMINISTIC: "✓",  # no run differed, but runs without the solution did
    Verdict.TOO_FEW: "?",
    Verdict.NOT_SHOWN: "≈",  # no run differed, with or without the solution
    Verdict.RAISES: "raises",
    Verdict.FAILED: "failed",
    Verdict.STALE: "stale",
    Verdict.UNSUPPORTED: "–",
    Verdict.BLANK: "",
}


def symbol_with_counts(cell: InferredCell) -> str:
    """Return the mark of a cell: ✗ 3/20, ✓ 0/60 (≤ 5%), ? 0/10; with ×2 if it was measured on two machines.

    3/20: 3 of 20 runs differed.  ≤ 5%: the upper 95 % bound on the probability that a run differs.
    """
    symbol = SYMBOLS[cell.verdict]
    if cell.verdict in (Verdict.NONDETERMINISTIC, Verdict.DETERMINISTIC, Verdict.TOO_FEW):
        symbol += f" {cell.differed}/{cell.runs}"
    if cell.verdict is Verdict.DETERMINISTIC:
        symbol += f" (≤ {cell.bound95:.0%})"
    return symbol + (f" ×{cell.machines}" if cell.machines > 1 else "")
