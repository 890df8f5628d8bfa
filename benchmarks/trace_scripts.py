"""Is `trace` right on public training scripts that nobody here wrote? Unchanged, on synthetic data.

    python benchmarks/trace_scripts.py FOLDER [SCRIPT...] [--write]

FOLDER holds the scripts; what is not there is fetched by name and commit. Each is run without probes and with probes at
every op: are its final weights the same? Then a fault is planted outside of it, two runs are recorded, and the diff has
to name it.  Promised: all weights the same or explained, ten of twelve faults found.  Baseline: the run without probes.
--write keeps what was found, and the table of docs/trace.md.
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
KEPT = Path(__file__).with_suffix(".json")
PAGE = ROOT / "docs" / "trace.md"
MARKS = ("<!-- scripts: written by benchmarks/trace_scripts.py -->\n", "<!-- end of scripts -->")
KERAS, KERAS3 = ("keras-team/keras", "1a3ee8441933"), ("keras-team/keras", "3422977a5e38")
EXAMPLES = ("aymericdamien/TensorFlow-Examples", "6dcbe14649")
FED = {"Python feed", "input pipeline"}
WANTED = {"data": FED, "order": FED | {"order only"}, "clock": FED, "seeds": FED | {"seed or state"}}


@dataclass(frozen=True)
class Script:
    """One script: where it is from, in which TensorFlow it runs, and which fault is planted."""

    source: tuple[str, str]
    path: str
    environment: str
    fault: str

    @property
    def name(self) -> str:
        return Path(self.path).stem


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
]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("scripts", nargs="*")
    parser.add_argument("--write", action="store_true", help="keep the results, and the table of docs/trace.md")
    options = parser.parse_args()
    chosen = [one for one in SCRIPTS if not options.scripts or one.name in options.scripts]
    found = {}
    for environment in sorted({one.environment for one in chosen}):
        found.update(run(environment, [one for one in chosen if one.environment == environment], options))
    same, named = sum(one["same"] != "no" for one in found.values()), sum(one["named"] for one in found.values())
    print(f"{same} of {len(found)} with the same weights, {named} of {len(found)} faults found")
    return int(named < len(found) * 10 / 12)


def run(environment: str, scripts: list[Script], options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    from forks import Forks
    from trace_collection import interpreter

    found = {}
    with Forks(interpreter(environment)) as forks:
        for script in scripts:
            with tempfile.TemporaryDirectory() as folder:
                found[script.name] = looked_at(forks, script, located(options.folder, script), Path(folder))
            print(environment, script.name, json.dumps(found[script.name]), flush=True)
            if options.write:
                write({script.name: found[script.name]})
    return found


def located(folder: Path, script: Script) -> Path:
    """The script's file, fetched if it is not there."""
    path = folder / script.source[0].replace("/", "+") / script.source[1] / script.path
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        url = f"https://raw.githubusercontent.com/{script.source[0]}/{script.source[1]}/{script.path}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            path.write_bytes(answer.read())
    return path


def looked_at(forks: Any, script: Script, path: Path, folder: Path) -> dict[str, Any]:
    """same: are the weights those of the untraced run? At level ops less is fused, which may change last bits; then
    both run with nothing fused. named: was the fault found? said: the first culprit."""
    from forks import traced

    from tfdeterminism.trace.analyse import diff
    from tfdeterminism.trace.analyse.reader import load

    def recorded(*wanted: tuple[str, str]) -> list[Path]:
        """A folder for each (level, fault)."""
        places = [folder / f"{fault}-{level}-{number}" for number, (level, fault) in enumerate(wanted)]
        jobs = [traced(place, DRIVER, str(path), fault, options=("--level", level), alone=True,
                       fresh=fault == "order")  # forks of one process have its hashes
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
        same = "yes" if agree("none") else "yes, where nothing is fused" if agree("unfused") else "no"
        difference = diff.compare([str(place) for place in recorded(("ops", script.fault), ("ops", script.fault))])
    except RuntimeError as error:
        return {"same": "no", "named": False, "said": str(error)}
    first = (difference.culprits or [{"class": difference.result, "op_type": "-", "file": None, "line": 0}])[0]
    said = f"{first['op_type']}: {first['class']}"
    if first["file"]:
        said += f" ({Path(first['file']).name}:{first['line']})"
    return {"same": same, "named": first["class"] in WANTED[script.fault], "said": said}


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
