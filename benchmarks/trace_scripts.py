"""Accuracy of `trace` on public training scripts, unchanged, on synthetic data.

    python benchmarks/trace_scripts.py FOLDER [SCRIPT...] [--write]

FOLDER has the scripts; missing ones are downloaded by name and commit. Each script runs without probes and with probes
at every op, and its final weights are compared. Then a fault is planted outside of it, two runs are recorded, and the
diff must name the fault.  Promised: all weights equal or explained, ten of twelve faults found.  Baseline: the run
without probes.  trace_scripts_driver.py and trace_scripts_torch.py run the scripts of TensorFlow and PyTorch.
--write stores the results, and the table of docs/reference/trace-accuracy.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "runtime"), str(ROOT / "tests" / "runtime"), str(ROOT / "src"), str(ROOT / "benchmarks")]
DRIVER = Path(__file__).with_name("trace_scripts_driver.py")
TORCH_DRIVER = Path(__file__).with_name("trace_scripts_torch.py")
RESULTS = Path(__file__).with_suffix(".json")
PAGE = ROOT / "docs" / "reference" / "trace-accuracy.md"
MARKS = ("<!-- scripts: written by benchmarks/trace_scripts.py -->\n", "<!-- end of scripts -->")
KERAS, KERAS3 = ("keras-team/keras", "1a3ee8441933"), ("keras-team/keras", "3422977a5e38")
TORCH, GPT = ("pytorch/examples", "77f55b912142"), ("karpathy/minGPT", "37baab71b9ab")
MAKEMORE, NETS = ("karpathy/makemore", "988aa59e4d8f"), ("jcjohnson/pytorch-examples", "0003fcdc606a")
COURSE = ("yunjey/pytorch-tutorial", "0500d3df5a2a")
EXAMPLES = ("aymericdamien/TensorFlow-Examples", "6dcbe14649")
FED = {"Python feed", "input pipeline"}
# {planted fault: the classes of the first culprit that are right}
EXPECTED_CLASSES = {"data": FED, "order": FED | {"order only"}, "clock": FED, "seeds": FED | {"seed or state"}}


@dataclass(frozen=True)
class Script:
    """A script of a repository.

    source: (repository, commit).  environment: where it runs.  fault: the planted fault.
    needs: the files of its repository that it imports.
    """

    source: tuple[str, str]
    path: str
    environment: str
    fault: str
    arguments: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        path = Path(self.path)
        return path.parent.name if path.stem in ("main", "train") else path.stem


def _scripts_of(
    source: tuple[str, str], environment: str, folder: str, *names_and_faults: tuple[str, str]
) -> list[Script]:
    return [Script(source, f"{folder}/{name}.py", environment, fault) for name, fault in names_and_faults]


SCRIPTS = [
    *_scripts_of(KERAS, "tf2.21", "examples", ("mnist_cnn", "data"), ("mnist_irnn", "order"),
         ("mnist_hierarchical_rnn", "clock"), ("imdb_lstm", "seeds"), ("imdb_cnn", "data"), ("imdb_cnn_lstm", "order"),
         ("imdb_bidirectional_lstm", "clock"), ("imdb_fasttext", "seeds")),
    *_scripts_of(KERAS3, "tf2.21", "examples", ("demo_mnist_convnet", "order")),
    *_scripts_of(EXAMPLES, "tf1.14", "tensorflow_v1/examples/2_BasicModels", ("logistic_regression", "data")),
    *_scripts_of(EXAMPLES, "tf1.14", "tensorflow_v1/examples/3_NeuralNetworks", ("autoencoder", "clock"),
         ("bidirectional_rnn", "seeds"), ("convolutional_network_raw", "order"), ("dynamic_rnn", "seeds"),
         ("neural_network_raw", "data"), ("recurrent_network", "clock")),
    Script(TORCH, "mnist/main.py", "torch2.13", "data"),
    Script(TORCH, "mnist_rnn/main.py", "torch2.13", "order"),
    Script(TORCH, "vae/main.py", "torch2.13", "clock"),
    Script(TORCH, "regression/main.py", "torch2.13", "seeds"),
    Script(TORCH, "word_language_model/main.py", "torch2.13", "seeds", ("--nhid", "32", "--emsize", "32"),
           ("word_language_model/data.py", "word_language_model/model.py")),
    Script(TORCH, "time_sequence_prediction/train.py", "torch2.13", "clock", ("--steps", "1")),
    Script(GPT, "projects/adder/adder.py", "torch2.13", "seeds",
           ("--data.ndigit=1", "--trainer.max_iters=8", "--trainer.num_workers=0"),
           tuple(f"mingpt/{name}.py" for name in ("__init__", "bpe", "model", "trainer", "utils"))),
    Script(MAKEMORE, "makemore.py", "torch2.13", "order", ("--max-steps", "8", "--num-workers", "0")),
    Script(NETS, "nn/two_layer_net_optim.py", "torch2.13", "seeds"),
    Script(NETS, "autograd/two_layer_net_custom_function.py", "torch2.13", "seeds"),
    *_scripts_of(COURSE, "torch2.13", "tutorials", ("02-intermediate/deep_residual_network/main", "data"),
         ("03-advanced/generative_adversarial_network/main", "clock"),
         ("02-intermediate/bidirectional_recurrent_neural_network/main", "order")),
]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("scripts", nargs="*")
    parser.add_argument(
        "--write", action="store_true", help="keep the results, and the table of docs/reference/trace-accuracy.md"
    )
    options = parser.parse_args()
    chosen = [script for script in SCRIPTS if not options.scripts or script.name in options.scripts]
    results = {}
    for environment in sorted({script.environment for script in chosen}):
        results.update(run(environment, [script for script in chosen if script.environment == environment], options))
    same = sum(result["same"] != "no" for result in results.values())
    named = sum(result["named"] for result in results.values())
    print(f"{same} of {len(results)} with the same weights, {named} of {len(results)} faults found")
    return int(named < len(results) * 10 / 12)


def run(environment: str, scripts: list[Script], options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    from collection import framework
    from forks import Forks
    from trace_collection import interpreter

    results = {}
    with Forks(interpreter(environment), framework(environment)) as forks:
        for script in scripts:
            with tempfile.TemporaryDirectory() as folder:
                results[script.name] = examine(forks, script, fetch_script(options.folder, script), Path(folder))
            print(environment, script.name, json.dumps(results[script.name]), flush=True)
            if options.write:
                write({script.name: results[script.name]})
    return results


def fetch_script(folder: Path, script: Script) -> Path:
    """Return the script's file; download it and the files that it needs, if they are missing."""
    for name in (*script.needs, script.path):
        path = root(folder, script) / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            url = f"https://raw.githubusercontent.com/{script.source[0]}/{script.source[1]}/{name}"
            with urllib.request.urlopen(url, timeout=60) as response:
                path.write_bytes(response.read())
    return path


def root(folder: Path, script: Script) -> Path:
    return folder.resolve() / script.source[0].replace("/", "+") / script.source[1]


def driver_command(script: Script, path: Path, fault: str) -> list[str]:
    """Return the command line that runs a script in its driver."""
    if script.environment.startswith("torch"):
        checkout = str(path).removesuffix(script.path)
        return [str(TORCH_DRIVER), checkout, str(path), fault, *script.arguments]
    return [str(DRIVER), str(path), fault]


def examine(forks: Any, script: Script, path: Path, folder: Path) -> dict[str, Any]:
    """Return the result of a script.

    same: whether the weights are those of the untraced run. At level `ops` TensorFlow fuses less, which may change the
    last bits; then both runs are repeated without fusion. named: whether the fault was found. said: the first culprit.
    """
    from forks import traced

    from tfdeterminism.trace.causes import trace_diff
    from tfdeterminism.trace.schema.reader import load

    def record_runs(*levels_and_faults: tuple[str, str]) -> list[Path]:
        """Record a run for each (level, fault); return their folders."""
        folders = [folder / f"{fault}-{level}-{number}" for number, (level, fault) in enumerate(levels_and_faults)]
        jobs = [traced(run_folder, *driver_command(script, path, fault), options=("--level", level), alone=True,
                       fresh=fault in ("order", "seeds"),  # forks of one process have its hashes, and its generators
                       folder=str(create_work_folder(run_folder)))
                for run_folder, (level, fault) in zip(folders, levels_and_faults, strict=True)]  # fmt: skip
        for process in forks.run(jobs):
            if process.returncode:
                raise RuntimeError(f"does not run: {process.stderr.strip().splitlines()[-1]}")
        return folders

    def has_equal_weights(fault: str) -> bool:
        folders = record_runs(("none", fault), ("ops", fault))
        plain, probed = ((load(str(run_folder / "trace-0.tfdt")).end or {}).get("weights") for run_folder in folders)
        return plain is not None and plain == probed

    try:
        may_fuse = script.environment.startswith("tf")
        same = (
            "yes"
            if has_equal_weights("none")
            else "yes, where nothing is fused"
            if may_fuse and has_equal_weights("unfused")
            else "no"
        )
        difference = trace_diff.compare(
            [str(run_folder) for run_folder in record_runs(("ops", script.fault), ("ops", script.fault))]
        )
    except RuntimeError as error:
        return {"same": "no", "named": False, "said": str(error)}
    culprit = (difference.culprits or [{"class": difference.result, "op_type": "-", "file": None, "line": 0}])[0]
    text = f"{culprit['op_type']}: {culprit['class']}"
    if culprit["file"]:
        text += f" ({Path(culprit['file']).name}:{culprit['line']})"
    return {"same": same, "named": culprit["class"] in EXPECTED_CLASSES[script.fault], "said": text}


def create_work_folder(run_folder: Path) -> Path:
    """Create and return a separate folder for the files that a run writes."""
    work_folder = run_folder.with_name(run_folder.name + "-files")
    work_folder.mkdir()
    return work_folder


def write(results: dict[str, dict[str, Any]]) -> None:
    stored = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    stored.update(results)
    RESULTS.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n", "utf-8")
    before, _, rest = PAGE.read_text("utf-8").partition(MARKS[0])
    PAGE.write_text(before + MARKS[0] + table(stored) + MARKS[1] + rest.partition(MARKS[1])[2], "utf-8")


def table(stored: dict[str, dict[str, Any]]) -> str:
    lines = ["", "| script | commit | in | weights as untraced | planted | found | the first culprit |",
             "|:--|:--|:--|:--|:--|:--|:--|"]  # fmt: skip
    for script in SCRIPTS:
        if script.name in stored:
            result = stored[script.name]
            cells = [f"{script.source[0]} `{script.path}`", f"`{script.source[1]}`", script.environment,
                     result["same"], script.fault, "yes" if result["named"] else "**no**",
                     result["said"]]  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", ""])


if __name__ == "__main__":
    sys.exit(main())
