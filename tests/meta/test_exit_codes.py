"""The exit codes 0 to 4 of a run, and the effect of solutions and claims on them.

A cell of a plan is (source, solution, claimed result); solution TDO sets TF_DETERMINISTIC_OPS=1, `none` is the control.
"""

import json
import warnings

import pytest

from tfdet_probe import __main__ as program

HEAD = "import os\nimport numpy as np\nfrom tfdet_probe import case\n"
EQUAL = HEAD + '@case("clean", modes=["host"])\ndef clean(make):\n    return make.host(lambda: [np.zeros(1)])\n'
NOISE = '@case("noisy", modes=["host"])\ndef noisy(make):\n    return make.host(lambda: [np.random.rand(3)])\n'
FAST = ("--repeats", 2, "--processes", 1)

# A case that differs unless TF_DETERMINISTIC_OPS is set when it is built; its output tells which variables it saw.
HEEDS = (
    HEAD
    + """
SET = os.environ.get("TF_DETERMINISTIC_OPS")


@case("heeds", modes=["host"])
def heeds(make):
    early = os.environ.get("TF_DETERMINISTIC_OPS")
    seen = [[SET == "leaked", early == "1", os.environ.get("TF_CUDNN_DETERMINISTIC") is not None]]
    return make.host(lambda: [np.array(seen), np.random.rand(1) * (early is None)])
"""
)


def test_0_if_records_agree_with_the_claims(probe):
    probe.plan(("clean", "none", None), ("clean", "TDO", "deterministic"))
    run = probe(probe.suite(EQUAL), *FAST)
    assert (run.code, len(run.records)) == (0, 2)
    assert run.out.splitlines()[0].split() == ["source", "none", "TDO"]


def test_1_a_solution_without_effect(probe):
    probe.plan(("noisy", "none", None), ("noisy", "TDO", "deterministic"), "clean")
    run = probe(probe.suite(EQUAL + NOISE), *FAST)
    assert run.code == 1
    assert [run.record_of("noisy", key)["observation"] for key in ("none", "TDO")] == ["differs", "differs"]
    assert "noisy [noisy-host] under TDO: claimed deterministic, but differs (2 of 2)" in run.err
    assert "Traceback" not in run.err
    assert probe(probe.suite(EQUAL + NOISE), *FAST).code == 1  # nothing is left to run, but the stored records count


def test_1_a_case_that_is_claimed_to_raise_and_does_not(probe):
    probe.plan(("clean", "none", "raises"))
    run = probe(probe.suite(EQUAL), *FAST)
    assert run.code == 1
    assert "claimed to raise, but equal" in run.err


def test_0_a_case_without_claim_may_differ(probe):
    cell = {"device": "cpu", "source": "clean", "solution": "none", "expect": "raises", "except_cases": ["clean-host"]}
    probe.plan(cells=[cell])
    assert probe(probe.suite(EQUAL), *FAST).code == 0


def test_a_variable_of_the_callers_shell_does_not_reach_the_control(probe):
    probe.plan(("heeds", "none", None), ("heeds", "TDO", "deterministic"))
    run = probe(probe.suite(HEEDS), *FAST, TF_DETERMINISTIC_OPS="leaked", TF_CUDNN_DETERMINISTIC="1")
    assert run.code == 0
    control, solved = run.record_of("heeds"), run.record_of("heeds", "TDO")
    assert (control["observation"], solved["observation"]) == ("differs", "equal")
    assert control["determinism_environment"] == {}
    assert solved["determinism_environment"] == {"TF_DETERMINISTIC_OPS": "1"}
    clean = probe(probe.suite(HEEDS), *FAST, "--out", probe.folder / "clean.jsonl")
    assert clean.code == 0
    records = [json.loads(line) for line in (probe.folder / "clean.jsonl").read_text().splitlines()]
    assert [r["digests"][0] for r in records if r["solution"] == "TDO"] == [solved["digests"][0]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--source", "claen"], "not in the plan of planted: claen"),
        (["--solution", "NOPE"], "not in the plan of planted: NOPE"),
        (["--plan", "nowhere.json"], "nowhere.json"),
        (["--suite", "nowhere"], "no suite at nowhere"),
        (["--repeats", "0"], "not a positive number"),
        (["--repeats", "many"], "invalid"),
        (["--timeout", "nan"], "not a positive number of seconds"),
        (["--timeout", "-1"], "not a positive number of seconds"),
        (["--memory", "0"], "not a positive number"),
        (["--device", "tpu"], "tpu"),
        (["--out", "nowhere/records.jsonl"], "cannot write the records"),
        (["--device", "gpu"], "nothing to run on the gpu"),
        (["--solution", "TEOD"], "nothing to run on the cpu"),
    ],
)
def test_2_wrong_usage(probe, arguments, words):
    probe.plan("clean")
    run = probe(probe.suite(EQUAL), *arguments)
    assert run.code == 2
    assert words in run.err
    assert "Traceback" not in run.err


@pytest.mark.parametrize(
    "plan",
    [
        "",
        "{",
        "[]",
        "3",
        "null",
        '{"schema": 1}',
        '{"schema": 2}',
        '{"schema": 3}',
        {"framework": None},
        '{"schema": "1"}',
        {"cells": 3},
        {"cells": [3]},
        {"cells": [{"device": "cpu"}]},
        {"solutions": [{}]},
        {"solutions": None},
        {"cells": [{"device": "cpu", "source": "clean", "solution": "NOPE"}]},
        {"cells": [{"device": "tpu", "source": "clean", "solution": "none"}]},
    ],
)
def test_2_bad_plan(probe, plan):
    if isinstance(plan, str):
        (probe.folder / "plan.json").write_text(plan)
    else:
        probe.plan("clean", **plan)
    run = probe(probe.suite(EQUAL))
    assert run.code == 2
    assert "plan" in run.err and "Traceback" not in run.err


def test_2_a_file_without_records_is_not_overwritten(probe):
    probe.plan("clean")
    probe.out.write_text("my notes\n")
    run = probe(probe.suite(EQUAL))
    assert (run.code, probe.out.read_text()) == (2, "my notes\n")
    assert "records.jsonl:1: not a record" in run.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import nowhere_at_all\n", "nowhere_at_all"),
        ("def broken(:\n", "SyntaxError"),
        (HEAD + '@case("x", ops=["Add"], modes=["host"])\ndef x(make):\n    pass\n', "no ops whose placement"),
        (HEAD + '@case("x", modes=["host"], dtype=[])\ndef x(make):\n    pass\n', "no values for dtype"),
        (HEAD + '@case("x", modes=["hots"])\ndef x(make):\n    pass\n', "unknown modes"),
        (HEAD + '@case(source="x", modes=["host"])\ndef x(make):\n    pass\n', "x: write @case("),
        (
            HEAD + 'if 1:\n    @case("x", modes=["host"])\n    def x(make):\n        pass\n',
            "x: write @case(",
        ),
    ],
)
def test_3_a_module_that_cannot_be_imported_leaves_the_others_alone(probe, text, words):
    probe.plan("clean")
    probe.suite(text, "test_broken.py")
    run = probe(probe.suite(EQUAL), *FAST)
    assert run.code == 3
    assert words in run.err
    assert run.record_of("clean")["observation"] == "equal"


def test_3_a_case_that_cannot_be_run_leaves_the_others_of_its_module_alone(probe):
    probe.plan("clean")
    run = probe(probe.suite(EQUAL + '\n@case("x", modes=["host"], dtype=[])\ndef x(make):\n    pass\n'), *FAST)
    assert run.code == 3 and "! x: no values for dtype" in run.err and "[1/1]" in run.err
    assert run.record_of("clean")["observation"] == "equal"


def test_a_source_in_single_quotes(probe):
    probe.plan("clean")
    run = probe(probe.suite(EQUAL.replace('"', "'")), *FAST)
    assert (run.code, len(run.records)) == (0, 1)


def test_3_an_error_of_the_probe_is_no_contradiction(probe, monkeypatch, capfd):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")
    monkeypatch.setattr(program, "_run", lambda *arguments: 1 // 0)
    probe.framework = "tensorflow"
    probe.plan("clean")
    arguments = ["--plan", probe.folder / "plan.json", "--suite", probe.suite(EQUAL), "--out", probe.out]
    with warnings.catch_warnings():
        assert program.main(["--device", "cpu", *map(str, arguments)]) == 3
    stderr = capfd.readouterr().err
    assert "ZeroDivisionError" in stderr
    assert "a defect of tfdet: please report it" in stderr


def test_3_no_source_of_the_plan_is_in_the_suite(probe):
    probe.plan("elsewhere")
    run = probe(probe.suite(EQUAL))
    assert run.code == 3
    assert "nothing was run" in run.err


def test_3_two_cases_with_equal_names(probe):
    probe.plan("clean")
    probe.suite(EQUAL, "test_more.py")
    run = probe(probe.suite(EQUAL))
    assert run.code == 3
    assert "two cases of clean have the key clean-host" in run.err


def test_settings_above_the_suite_do_not_count(probe):
    probe.plan("clean")
    (probe.folder / "conftest.py").write_text("raise SystemExit('not part of the suite')")
    (probe.folder / "pytest.ini").write_text("[pytest]\npython_files = nothing\n")
    run = probe(probe.suite(EQUAL), *FAST, PYTEST_ADDOPTS="-k nothing")
    assert (run.code, len(run.records)) == (0, 1)


def test_4_no_gpu(probe):
    probe.plan("clean", cells=[{"device": "gpu", "source": "clean", "solution": "none"}])
    run = probe(probe.suite(EQUAL), device="gpu")
    assert run.code == 4
    assert "--device cpu" in run.err and not run.records


def test_2_a_framework_without_an_adapter(probe):
    probe.framework = "mxnet"
    probe.plan("clean")
    run = probe(probe.suite(EQUAL))
    assert run.code == 2
    assert "no adapter for the framework 'mxnet'; there are: bare, jax, tensorflow, torch" in run.err


def test_3_no_tensorflow(probe):
    probe.framework = "tensorflow"
    probe.plan("clean")
    run = probe(probe.suite(EQUAL))
    assert run.code == 3
    assert "TensorFlow did not start here" in run.err


def test_a_framework_whose_library_is_missing_is_no_defect_of_ours(tmp_path, probe_in):
    """PyTorch loads NVIDIA's libraries itself if the loader does not find them, so its import raises OSError."""
    missing = "libcudart.so.13: cannot open shared object file: No such file or directory"
    (tmp_path / "torch.py").write_text(f"raise OSError({missing!r})\n")
    probe = probe_in(tmp_path, framework="torch")
    probe.plan("sums")
    run = probe(probe.suite(""))
    assert (run.code, run.err) == (3, f"tfdet: PyTorch cannot be imported: {missing}\n")
