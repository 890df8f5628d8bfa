"""The recorder in real TensorFlows: what it records, which lines it names, and that it changes no result."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
import weekly
from forks import TRACE, Forks, Job, traced

from tfdeterminism.trace.schema.format import key_of
from tfdeterminism.trace.schema.reader import Trace, load

PROGRAMS = Path(__file__).resolve().parent / "recorded"
# {how recorded/endings.py ends: (exit code, words on stderr)}; nothing: without TensorFlow; before: by an error before
# its import; full: no file can grow, so the recording fails and the program goes on.
ENDINGS = {
    "nothing": (6, "ran no TensorFlow or PyTorch op"),
    "before": (1, "before TensorFlow"),
    "raise": (1, "the program's own"),
    "exit": (5, ""),
    "os._exit": (7, ""),
    "kill": (-9, ""),
    "fork": (0, ""),
    "spawn": (0, ""),
    "full": (7, "the program goes on"),
}
WITHOUT_TENSORFLOW = ("nothing", "before")

pytestmark = pytest.mark.tensorflow


class Environment:
    """One TensorFlow, with a folder for its runs."""

    def __init__(self, key: str, forks: Forks, folder: Path) -> None:
        self.forks = forks
        self.folder = folder
        self.version = tuple(int(part) for part in key.removeprefix("tf").split("."))
        jobs = self._jobs()
        self.ran = dict(zip(jobs, forks.run(list(jobs.values())), strict=True))

    def _jobs(self) -> dict[str, Job]:
        """Every run that needs no other's trace. The fresh ones import TensorFlow under trace, as a user's does."""
        jobs = {name: Job([str(PROGRAMS / f"{name}.py")]) for name in ("session", "digests")}
        jobs["everything"] = Job([str(PROGRAMS / "everything.py"), str(self.folder / "everything")])
        for name in ("session-0", "session-1"):
            jobs[name] = traced(self.folder / name, PROGRAMS / "session.py", fresh=name == "session-0")
        for level in ("none", "layers", "ops"):
            out, options = self.folder / f"train-{level}", ("--level", level)
            jobs[out.name] = traced(out, PROGRAMS / "train.py", options=options, fresh=level == "ops")
        for how in ENDINGS:
            out = self.folder / f"end-{how}"
            jobs[out.name] = traced(out, PROGRAMS / "endings.py", how, fresh=how in WITHOUT_TENSORFLOW)
        return jobs

    def run(self, job: Job) -> subprocess.CompletedProcess[str]:
        return self.forks.run([job])[0]

    def trace(self, out: str) -> Trace:
        return load(str(self.folder / out / "trace-0.tfdt"))


@pytest.fixture(scope="module", params=weekly.select_for_today(["tf2.21", "tf2.0", "tf1.14"]))
def environment_runs(
    request: pytest.FixtureRequest, forks: Callable[[str], Forks], tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    return Environment(request.param, forks(request.param), tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def trace_of_function(environment_runs: Environment) -> Callable[[str], Trace]:
    """Return a function everything("dtypes"): the trace of that function of recorded/everything.py."""
    done = environment_runs.ran["everything"]
    assert done.returncode == 0, done.stderr[-3000:]
    return lambda name: environment_runs.trace("everything/" + name)


def line_of(program: str, marker: str) -> int:
    lines = (PROGRAMS / program).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if f"# line: {marker}" in line)


def recorded_definitions(trace: Trace, **fields: object) -> list[dict]:
    """Return the definitions with these values that have records."""
    keys = set(trace.records["key"].tolist())
    return [
        definition
        for definition in trace.definitions
        if definition["id"] in keys and all(definition[name] == value for name, value in fields.items())
    ]


def count_records(trace: Trace, **fields: object) -> int:
    ids = [definition["id"] for definition in recorded_definitions(trace, **fields)]
    return int(numpy.isin(trace.records["key"], ids).sum())


def by_key(trace: Trace) -> dict:
    """Return {(key, occurrence): (digest, shape)} of the trace."""
    names = [key_of(definition) for definition in trace.definitions]
    return {
        (names[record["key"]], int(record["occurrence"])): (int(record["digest"]), int(record["shape"]))
        for record in trace.records
    }


def test_ops_of_loops_maps_and_branches_are_recorded(trace_of_function: Callable) -> None:
    trace = trace_of_function("control_flow")
    assert trace.damage is None
    line = line_of("everything.py", "while")
    assert count_records(trace, op="Sum", line=line) == 9  # three calls of three iterations
    assert count_records(trace, op="Exp", line=line_of("everything.py", "map_fn")) == 6  # two rows
    assert count_records(trace, op="Tanh", line=line_of("everything.py", "cond")) == 3
    assert count_records(trace, op="Sqrt") == 0  # the branch that is not taken
    assert {definition["file"] for definition in recorded_definitions(trace, op="MatMul")} == {
        str(PROGRAMS / "everything.py")
    }


def test_a_gradient_names_its_forward_op_and_that_ops_line(trace_of_function: Callable) -> None:
    trace = trace_of_function("control_flow")
    gradients = [definition for definition in recorded_definitions(trace, op="MatMul") if definition["forward"]]
    assert [definition["forward"] for definition in gradients] == ["MatMul"]
    assert gradients[0]["line"] == line_of("everything.py", "gradient")
    assert gradients[0]["forward_stack"][0][1] == line_of("everything.py", "matmul")
    eager = recorded_definitions(trace_of_function("eager_gradient"), op="Cos")
    assert eager[0]["forward_stack"][0][1] == line_of("everything.py", "eager sin")


def test_a_read_and_a_write_name_the_variable(trace_of_function: Callable) -> None:
    trace = trace_of_function("control_flow")
    assert [definition["variable"] for definition in recorded_definitions(trace, kind="read", function="train")][
        :1
    ] == ["w"]
    assert {definition["variable"] for definition in recorded_definitions(trace, kind="write")} == {"w"}
    assert trace.end["variables"].keys() == {"w"}


def test_steps_are_counted(trace_of_function: Callable) -> None:
    trace = trace_of_function("control_flow")
    matmul = recorded_definitions(trace, op="MatMul", forward=None)[0]["id"]
    assert trace.records["step"][trace.records["key"] == matmul].tolist() == [0, 1, 2]


def test_inputs_connect_every_op_with_its_sources(trace_of_function: Callable) -> None:
    trace = trace_of_function("control_flow")
    definitions = {item["id"]: item for item in trace.definitions}
    waiting, sources = [recorded_definitions(trace, op="Tanh")[0]["id"]], set()
    while waiting:  # through the branch's argument, the loop, and into the function
        definition = definitions[waiting.pop()]
        if definition["id"] not in sources:
            sources.add(definition["id"])
            waiting += definition["inputs"]
    assert {"While", "MatMul", "ReadVariableOp"} <= {
        definitions[number]["op"].replace("Stateless", "") for number in sources
    }


def test_each_signature_is_a_trace_of_its_own(trace_of_function: Callable) -> None:
    trace = trace_of_function("retrace")
    doubles = recorded_definitions(trace, op="Mul", function="double")
    assert len(doubles) == 2
    assert len({definition["trace"] for definition in doubles}) == 2  # a number for each tf.function trace of a name
    assert sorted(count_records(trace, id=definition["id"]) for definition in doubles) == [1, 2]


def test_every_type_is_digested(trace_of_function: Callable) -> None:
    trace = trace_of_function("dtypes")
    kinds = {
        "float32",
        "float64",
        "float16",
        "bfloat16",
        "int8",
        "uint8",
        "int32",
        "int64",
        "bool",
        "complex64",
        "string",
    }
    for function in ("", "same"):
        packed = [
            definition
            for definition in recorded_definitions(trace, function=function)
            if definition["op"] in ("Pack", "ZerosLike") or definition["op"] == "Const"
        ]
        assert {definition["dtype"] for definition in packed} >= kinds if function else True
    assert {definition["dtype"] for definition in recorded_definitions(trace, op="Pack", function="")} >= kinds


def test_values_from_python_and_pipelines_have_their_own_kind(
    trace_of_function: Callable, environment_runs: Environment
) -> None:
    trace = trace_of_function("feeds")
    assert recorded_definitions(trace, kind="feed", op="Python")
    assert recorded_definitions(trace, kind="input")
    assert recorded_definitions(trace, op="Neg")
    assert not [definition for definition in trace.definitions if definition["function"].startswith("Dataset")]


def test_calls_of_one_function_do_not_mix(trace_of_function: Callable) -> None:
    trace = trace_of_function("nested_calls")
    sine = recorded_definitions(trace, op="Sin")[0]["id"]
    digests = trace.records["digest"][trace.records["key"] == sine].tolist()
    assert len(digests) == 10
    assert len(set(digests[::2])) == len(set(digests[1::2])) == 1
    assert digests[0] != digests[1]


def test_two_runs_of_a_session_align_and_agree(environment_runs: Environment) -> None:
    plain, *runs = (environment_runs.ran[name] for name in ("session", "session-0", "session-1"))
    assert [completed.returncode for completed in runs] == [0, 0], runs[0].stderr[-3000:]
    assert [completed.stdout for completed in runs] == [plain.stdout] * 2  # the seed of the last op included
    first, second = (environment_runs.trace(f"session-{number}") for number in range(2))
    assert by_key(first) == by_key(second)
    assert count_records(first, op="Sin", line=line_of("session.py", "inner")) == 8  # iterations 0 and 2 of four steps
    nested = [count_records(first, op=op, forward=None, line=line_of("session.py", "nested")) for op in ("Exp", "Cos")]
    assert sum(nested) == 2  # the steps in which p is false
    assert recorded_definitions(first, kind="feed", op="Placeholder")
    assert first.end["weights"] == second.end["weights"]


def test_training_is_bit_identical_and_runs_align(environment_runs: Environment) -> None:
    runs = {level: environment_runs.ran[f"train-{level}"] for level in ("none", "layers", "ops")}
    assert {completed.returncode for completed in runs.values()} == {0}, runs["ops"].stderr[-3000:]
    assert len({completed.stdout for completed in runs.values()}) == 1
    traces = {level: environment_runs.trace(f"train-{level}") for level in runs}
    assert len({trace.end["weights"] for trace in traces.values()}) == 1
    assert traces["none"].end["weights"] is not None
    assert len(traces["none"].records) == 0
    assert traces["layers"].end["steps"] == traces["ops"].end["steps"] == 4
    weight = recorded_definitions(traces["layers"], kind="weight")[0]
    assert count_records(traces["layers"], id=weight["id"]) == 4
    assert recorded_definitions(traces["layers"], kind="loss" if environment_runs.version >= (2, 2) else "weight")
    assert recorded_definitions(traces["layers"], kind="layer") or environment_runs.version < (2, 0)
    assert recorded_definitions(traces["ops"], op="Conv2DBackpropFilter")


@pytest.mark.parametrize("how", ENDINGS)
def test_the_exit_code_is_kept_and_the_trace_readable_for_every_ending(environment_runs: Environment, how: str) -> None:
    status, message = ENDINGS[how]
    done = environment_runs.ran["end-" + how]
    assert done.returncode == status, done.stderr[-3000:]
    assert message in done.stderr
    trace = environment_runs.trace("end-" + how)
    if how in WITHOUT_TENSORFLOW:
        assert len(trace.records) == 0
        return
    sines = count_records(trace, op="Sin")
    assert sines >= 50 if how != "full" else sines > 0
    assert (trace.end is None) == (how in ("kill", "full"))
    if trace.end is not None:
        assert trace.end["exit"] == status
    if how == "full":
        assert done.stdout == "ended full\n"
        assert done.stderr.count("tfdeterminism.trace:") == 1


def test_inputs_of_an_op_are_captured_and_replayed(environment_runs: Environment) -> None:
    definition = recorded_definitions(environment_runs.trace("session-0"), op="MatMul", forward=None)[0]
    capture_request = json.dumps({name: definition[name] for name in ("function", "trace", "node")} | {"occurrence": 1})
    done = environment_runs.run(
        traced(
            environment_runs.folder / "capture", PROGRAMS / "session.py", options=("--capture-inputs", capture_request)
        )
    )
    assert done.returncode == 0, done.stderr[-3000:]
    captured = environment_runs.trace("capture").captures
    assert [entry["occurrence"] for entry in captured] == [1]
    capture_file = str(environment_runs.folder / "capture" / captured[0]["file"])
    replayed = environment_runs.run(Job([*TRACE, "replay", "--repeats", "3", capture_file]))
    assert replayed.returncode == 0, replayed.stderr[-3000:]
    answer = json.loads(replayed.stdout)
    assert (answer["op"], answer["times"], answer["distinct"]) == ("MatMul", 3, [1])
    replayed = environment_runs.run(Job([*TRACE, "replay", capture_of_device("/device:GPU:0", capture_file)]))
    assert (replayed.returncode, replayed.stdout) == (2, "")
    assert "it ran on a GPU, which is not here" in replayed.stderr


def capture_of_device(device: str, capture_file: str) -> str:
    """Rewrite the captured inputs as if the op had run on another device; return the path."""
    with numpy.load(capture_file) as arrays:
        parts = dict(arrays)
    meta = {**json.loads(parts["meta"].tobytes()), "device": device}
    parts["meta"] = numpy.frombuffer(json.dumps(meta).encode(), numpy.uint8)
    numpy.savez(capture_file, **parts)
    return capture_file


def test_a_traceback_of_the_program_shows_no_frame_of_the_trace(environment_runs: Environment) -> None:
    """An error inside TensorFlow, in a traced function and in a traced session."""
    for number, body in enumerate(("tf.function(lambda x: tf.reshape(x, [3, int('x')]))(tf.ones([2]))",
                                   "tf.compat.v1.Session(graph=tf.Graph()).run('none:0')")):  # fmt: skip
        program = environment_runs.folder / f"fails-{number}.py"
        program.write_text(f"import tensorflow as tf\ntf.compat.v1.enable_eager_execution()\n{body}\n")
        ran = environment_runs.run(traced(environment_runs.folder / f"fails-{number}", program))
        assert ran.returncode == 1
        assert f"fails-{number}.py" in ran.stderr
        assert "tfdeterminism" not in ran.stderr or environment_runs.version < (2, 1)  # of Pythons that fix the links


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "X", "--", "no-such.py"], "name the program after --"),
        (["--out", "X", "--capture-inputs", "{", "--", "train.py"], "give JSON"),
        (["--out", "session-0", "--", "train.py"], "holds a trace already"),
        (["--out"], "--out"),
        (["--out", "X", "--level", "all", "--", "train.py"], "--level"),
        (["--out", "X", "--", "-m"], "-m PACKAGE.MODULE"),
        (["--out", "X", "--", "-m", "no.such"], "no.such"),
        (["--out", "X", "--", "-m", "sys"], "no module sys to run"),
    ],
)
def test_wrong_usage_is_one_line(environment_runs: Environment, arguments: list[str], message: str) -> None:
    placed = [
        str(environment_runs.folder / argument) if argument in ("X", "session-0") else argument
        for argument in arguments
    ]
    placed = [str(PROGRAMS / argument) if argument == "train.py" else argument for argument in placed]
    done = environment_runs.run(Job([*TRACE, "run", *placed], fresh=True))
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_program_is_called_as_python_calls_it(environment_runs: Environment) -> None:
    program = environment_runs.folder / "called.py"
    program.write_text("import sys\nprint(__file__, __name__, sys.argv, sys.path[0])\n")
    job_options = {"folder": str(environment_runs.folder), "fresh": True}
    plain = environment_runs.run(Job(["called.py", "a", "--", "--out"], **job_options))
    ran = environment_runs.run(traced("called", "called.py", "a", "--", "--out", **job_options))
    assert (ran.returncode, ran.stdout) == (6, plain.stdout)


def test_a_module_is_called_as_python_calls_it(environment_runs: Environment) -> None:
    package = environment_runs.folder / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "told.py").write_text("WORD = 'relative'\n")
    source = "import sys\nfrom .told import WORD\nprint(__file__, __name__, __package__, sys.argv, sys.path[0], WORD)\n"
    for name in ("train", "__main__"):
        (package / f"{name}.py").write_text(source)
    job_options = {"folder": str(environment_runs.folder), "fresh": True}
    for name in ("package.train", "package"):
        plain = environment_runs.run(Job(["-m", name, "a"], **job_options))
        ran = environment_runs.run(traced(f"called-{name}", "-m", name, "a", **job_options))
        assert plain.stdout and (ran.returncode, ran.stdout) == (6, plain.stdout), ran.stderr


def test_no_mutation_is_missed_by_a_digest_in_tensorflow(environment_runs: Environment) -> None:
    done = environment_runs.ran["digests"]
    assert done.returncode == 0, done.stderr[-3000:]
    output = json.loads(done.stdout)
    assert (output["missed"], output["wrong"]) == (0, 0)
    assert output["tried"] > 300
