"""The shared suite without Docker: tox -e tf115-cpu, tox -e tf20-gpu, tox -e tf20-vgpu, ...

A tox environment on each kind of device for each environment of the matrix that pip builds; what they run stands in
tox.ini.  tox itself reads this file, wherever it is installed: tox and the standard library are all that it may need.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from tox.config.loader.memory import MemoryLoader
from tox.config.sets import ConfigSet
from tox.config.types import EnvList
from tox.plugin import impl
from tox.session.state import State

MATRIX = Path(__file__).parent / "matrix"


def pip_built() -> list[str]:
    """Keys of the matrix, oldest first."""
    files = (MATRIX / "environments").rglob("*.toml")
    keys = [path.stem for path in files if "pip" in tomllib.loads(path.read_text("utf-8"))]
    return sorted(keys, key=lambda key: ([int(number) for number in re.findall(r"\d+", key)], key))


def devices() -> list[str]:
    """What `--device` takes."""
    return sorted(tomllib.loads(path.read_text("utf-8"))["cli_name"] for path in (MATRIX / "devices").glob("*.toml"))


def named(keys: list[str]) -> dict[str, str]:
    """{name: key}: tf115 is tf1.15 and tf113 is tf1.13.1, for no other is of 1.13; tf1155 is tf1.15.5.

    A patch release keeps its dots where its name would be another's: tf2.1.2, for tf212 is tf2.12.
    """
    names: dict[str, str] = {}
    for key in sorted(keys, key=lambda key: key.count(".")):
        minor = ".".join(key.split(".")[:2])
        names[next(n for n in (minor.replace(".", ""), key.replace(".", ""), key) if n not in names)] = key
    return dict(sorted(names.items(), key=lambda item: keys.index(item[1])))


def settings() -> dict[str, dict[str, str]]:
    """{tox environment: the variables that tell tox.ini's command what to run}."""
    return {
        f"{name}-{device}": {"TFDET_ENV": key, "TFDET_DEVICE": device}
        for name, key in named(pip_built()).items()
        for device in devices()
    }


@impl
def tox_extend_envs() -> Iterable[str]:
    return list(settings())


@impl
def tox_add_core_config(core_conf: ConfigSet, state: State) -> None:
    core_conf.loaders.insert(0, MemoryLoader(env_list=EnvList(list(settings()))))  # what `tox` runs without -e
    for name, variables in settings().items():
        state.conf.memory_seed_loaders[name].append(MemoryLoader(set_env=variables))
