"""Is `trace` right on public training scripts that nobody here wrote? Unchanged, on synthetic data.

    python benchmarks/trace_scripts.py FOLDER [SCRIPT...] [--write]

FOLDER holds the scripts; what is not there is fetched by name and commit. Each is run without probes and with probes at
every op: are its final weights the same? Then a fault is planted outside of it, two runs are recorded, and the diff has
to name it.  Promised: all weights the same or explained, ten of twelve faults found.  Baseline: the run without probes.
Of TensorFlow and of PyTorch, by trace_scripts_driver.py and trace_scripts_torch.py.
--write keeps what was found, and the table of docs/reference/trace-accuracy.md.
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
DRIVER_OF_TORCH = Path(__file__).with_name("trace_scripts_torch.py")
KEPT = Path(__file__).with_suffix(".json")
PAGE = ROOT / "docs" / "reference" / "trace-accuracy.md"
MARKS = ("<!-- scripts: written by benchmarks/trace_scripts.py -->\n", "<!-- end of scripts -->")
KERAS, KERAS3 = ("keras-team/keras", "1a3ee8441933"), ("keras-team/keras", "3422977a5e38")
TORCH, GPT = ("pytorch/examples", "77f55b912142"), ("karpathy/minGPT", "37baab71b9ab")
NAMES, LEARNT = ("karpathy/makemore", "988aa59e4d8f"), ("jcjohnson/pytorch-examples", "0003fcdc606a")
COURSE = ("yunjey/pytorch-tutorial", "0500d3df5a2a")
EXAMPLES = ("aymericdamien/TensorFlow-Examples", "6dcbe14649")
FED = {"Python feed", "input pipeline"}
WANTED = {"data": FED, "order": FED | {"order only"}, "clock": FED, "seeds": FED | {"seed or state"}}


@dataclass(frozen=True)
class Script:
    """One script: where it is from, in which environment it runs, and which fault is planted; its arguments, and the
    files of its repository that it imports."""

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


def _of(source: tuple[str, str], environment: str, folder: str, *named: tuple[str, str]) -> list[Script]:
    return [Script(source, f"{folder}/{name}.py", environment, fault) for name, fault in named]


SCRIPTS = [
    *_of(KERAS, "tf2.21", "examples", ("mnist_cnn", "data"), ("mnist_irnn", "order"),
         ("mnist_hierarchical_rnn", "clock"), ("imdb_lstm", "seeds"), ("imdb_cnn", "data"), ("imdb_cnn_lstm", "order"),
         ("imdb_bidirectional_lstm", "clock"), ("imdb_fasttext", "seeds")),
    *_of(KERAS3, "tf2.21", "examples", ("demo_mnist_convnet", "order")),
    *_of(EXAMPLES, "tf1.14", "tensorflow_v1/examples/2_BasicModels", ("logistic_regression", "data")),
    *_of(EXAMPLES, "tf1.14", "tensorflow_v1/examples/3_NeuralNetworks", ("autoencoder", "clock"),
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
    Script(NAMES, "makemore.py", "torch2.13", "order", ("--max-steps", "8", "--num-workers", "0")),
    Script(LEARNT, "nn/two_layer_net_optim.py", "torch2.13", "seeds"),
    Script(LEARNT, "autograd/two_layer_net_custom_function.py", "torch2.13", "seeds"),
    *_of(COURSE, "torch2.13", "tutorials", ("02-intermediate/deep_residual_network/main", "data"),
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
    chosen = [one for one in SCRIPTS if not options.scripts or one.name in options.scripts]
    found = {}
    for environment in sorted({one.environment for one in chosen}):
        found.update(run(environment, [one for one in chosen if one.environment == environment], options))
    same, named = sum(one["same"] != "no" for one in found.values()), sum(one["named"] for one in found.values())
    print(f"{same} of {len(found)} with the same weights, {named} of {len(found)} faults found")
    return int(named < len(found) * 10 / 12)


def run(environment: str, scripts: list[Script], options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    from collection import framework
    from forks import Forks
    from trace_collection import interpreter

    found = {}
    with Forks(interpreter(environment), framework(environment)) as forks:
        for script in scripts:
            with tempfile.TemporaryDirectory() as folder:
                found[script.name] = looked_at(forks, script, located(options.folder, script), Path(folder))
            print(environment, script.name, json.dumps(found[script.name]), flush=True)
            if options.write:
                write({script.name: found[script.name]})
    return found


def located(folder: Path, script: Script) -> Path:
    """The script's file; it and what it needs are fetched if they are not there."""
    for name in (*script.needs, script.path):
        path = root(folder, script) / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            url = f"https://raw.githubusercontent.com/{script.source[0]}/{script.source[1]}/{name}"
            with urllib.request.urlopen(url, timeout=60) as answer:
                path.write_bytes(answer.read())
    return path


def root(folder: Path, script: Script) -> Path:
    return folder.resolve() / script.source[0].replace("/", "+") / script.source[1]


def driven(script: Script, path: Path, fault: str) -> list[str]:
    """The command line of its run, a driver's first."""
    if script.environment.startswith("torch"):
        top = str(path).removesuffix(script.path)
        return [str(DRIVER_OF_TORCH), top, str(path), fault, *script.arguments]
    return [str(DRIVER), str(path), fault]


def looked_at(forks: Any, script: Script, path: Path, folder: Path) -> dict[str, Any]:
    """same: are the weights those of the untraced run? At level ops less is fused, which may change last bits; then
    both run with nothing fused. named: was the fault found? said: the first culprit."""
    from forks import traced

    from tfdeterminism.trace.causes import trace_diff
    from tfdeterminism.trace.schema.reader import load

    def recorded(*wanted: tuple[str, str]) -> list[Path]:
        """A folder for each (level, fault)."""
        places = [folder / f"{fault}-{level}-{number}" for number, (level, fault) in enumerate(wanted)]
        jobs = [traced(place, *driven(script, path, fault), options=("--level", level), alone=True,
                       fresh=fault in ("order", "seeds"),  # forks of one process have its hashes, and its generators
                       folder=str(inside(place)))
                for place, (level, fault) in zip(places, wanted, strict=True)]  # fmt: skip
        for one in forks.run(jobs):
            if one.returncode:
                raise RuntimeError(f"does not run: {one.stderr.strip().splitlines()[-1]}")
        return places

    def agree(fault: str) -> bool:
        places = recorded(("none", fault), ("ops", fault))
        plain, probed = ((load(str(place / "trace-0.tfdt")).end or {}).get("weights") for place in places)
        return plain is not None and plain == probed

    try:
        fused = script.environment.startswith("tf")
        same = "yes" if agree("none") else "yes, where nothing is fused" if fused and agree("unfused") else "no"
        difference = trace_diff.compare(
            [str(place) for place in recorded(("ops", script.fault), ("ops", script.fault))]
        )
    except RuntimeError as error:
        return {"same": "no", "named": False, "said": str(error)}
    first = (difference.culprits or [{"class": difference.result, "op_type": "-", "file": None, "line": 0}])[0]
    said = f"{first['op_type']}: {first['class']}"
    if first["file"]:
        said += f" ({Path(first['file']).name}:{first['line']})"
    return {"same": same, "named": first["class"] in WANTED[script.fault], "said": said}


def inside(place: Path) -> Path:
    """A folder of its own for what a run writes."""
    made = place.with_name(place.name + "-files")
    made.mkdir()
    return made


def write(found: dict[str, dict[str, Any]]) -> None:
    kept = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    kept.update(found)
    KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", "utf-8")
    before, _, rest = PAGE.read_text("utf-8").partition(MARKS[0])
    PAGE.write_text(before + MARKS[0] + table(kept) + MARKS[1] + rest.partition(MARKS[1])[2], "utf-8")


def table(kept: dict[str, dict[str, Any]]) -> str:
    lines = ["", "| script | commit | in | weights as untraced | planted | found | the first culprit |",
             "|:--|:--|:--|:--|:--|:--|:--|"]  # fmt: skip
    for one in SCRIPTS:
        if one.name in kept:
            result = kept[one.name]
            cells = [f"{one.source[0]} `{one.path}`", f"`{one.source[1]}`", one.environment,
                     result["same"], one.fault, "yes" if result["named"] else "**no**",
                     result["said"]]  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", ""])


if __name__ == "__main__":
    sys.exit(main())
