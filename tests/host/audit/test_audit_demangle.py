"""Demangled kernel names."""

from __future__ import annotations

from tfdet.audit.demangle import demangle


def test_names_are_demangled_in_order_and_anonymous_namespaces_stay() -> None:
    names = ["_ZN10tensorflow12_GLOBAL__N_11fEPf", "main", "", "_Znonsense", "_ZN3foo3barEi"]
    assert demangle(names) == [
        "tensorflow::(anonymous namespace)::f(float*)",
        "main",
        "",
        "_Znonsense",
        "foo::bar(int)",
    ]
