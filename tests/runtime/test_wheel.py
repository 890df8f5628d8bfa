"""The wheels: what they ship, and that the documented commands install them.

For tfdeterminism: old and new pips install it, and it works in the TensorFlow versions that it supports.
"""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import weekly
from wheels import build, contents

from tfdet.base.paths import Project
from tfdet.engines.interpreters import find_python
from tfdet.engines.venv import VenvEngine
from tfdet.matrix.load import load_matrix
from tfdet.publish.recipe import recipe_text
from tfdet.verdicts.status_loading import load_status

HERE = Path(__file__).parent
TRAINING = HERE / "training_checks.py"
# The pip that came with each CPython: pip 18.1 with 3.6.  Debian keeps its own elsewhere.
BUNDLED_PIP = """
import ensurepip, glob, os, sysconfig
folders = [os.path.join(ensurepip.__path__[0], "_bundled"), sysconfig.get_config_var("WHEEL_PKG_DIR") or ""]
print([pip for folder in folders for pip in glob.glob(os.path.join(folder, "pip-*"))][0])
"""

TRAINED = ("tf1.14-python3.6", "tf1.15", "tf2.0", "tf2.4", "tf2.8", "tf2.15", "tf2.21")


@pytest.fixture(scope="session")
def wheel(checkout: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of tfdeterminism; return its path."""
    return build(checkout.runtime, tmp_path_factory.mktemp("dist"))


@dataclass(frozen=True)
class _WithLock(Project):
    """A checkout in which the lock file of one environment is another file."""

    file: Path

    def lock(self, environment: str, device: str) -> Path:
        return self.file


@pytest.fixture(scope="session")
def python_of(checkout: Project, tf_python: Callable[[str], Path]) -> Callable[[str], Path]:
    """Return tf_python's environment, or TensorFlow 1.14 on CPython 3.6, which the matrix lacks."""

    def interpreter(key: str) -> Path:
        if key != "tf1.14-python3.6":
            return tf_python(key)
        if find_python("3.6") is None:
            pytest.skip("no CPython 3.6 on this machine")
        environment = load_matrix(checkout.matrix).environment("tf1.14")
        assert environment.pip is not None
        older = environment.model_copy(update={"pip": environment.pip.model_copy(update={"python": "3.6"})})
        engine = VenvEngine(_WithLock(checkout.root, HERE / "tf1.14-python3.6.txt"))
        return engine.interpreter(key, older, "cpu")

    return interpreter


def test_the_wheel_contains_only_the_package(checkout: Project, wheel: Path) -> None:
    version = (checkout.runtime / "tfdeterminism" / "version.py").read_text().split('"')[-2]
    assert wheel.name == f"tfdeterminism-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
        metadata = email.message_from_bytes(content.read(f"tfdeterminism-{version}.dist-info/METADATA"))
        assert b"Tag: py3-none-any" in content.read(f"tfdeterminism-{version}.dist-info/WHEEL")
        licence = next(name for name in names if name.endswith("LICENSE"))
        assert content.read(licence) == (checkout.root / "LICENSE").read_bytes()
    package = checkout.runtime / "tfdeterminism"
    expected = {p.relative_to(checkout.runtime).as_posix() for p in package.rglob("*") if p.suffix in (".py", ".json")}
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert (metadata["Name"], metadata["Version"]) == ("tfdeterminism", version)
    assert metadata["Metadata-Version"] == "2.1"
    assert metadata["Requires-Python"] == ">=3.5"
    assert metadata.get_all("Requires-Dist") == ["xxhash>=2; extra == 'xxhash'"], "it needs nothing"
    assert "enable_determinism" in metadata.get_payload()


def test_no_file_is_in_both_wheels_and_tfdet_depends_on_the_other(
    checkout: Project, wheel: Path, tmp_path: Path
) -> None:
    files, metadata = contents(build(checkout.root, tmp_path))
    library, about = contents(wheel)
    packages = {path.parent.name for path in checkout.runtime.glob("*/__init__.py")}
    assert {name.split("/")[0] for name in files} == {"tfdet", *packages - {"tfdeterminism", "unbundle"}}
    assert "tfdet/py.typed" in files
    assert {name.split("/")[0] for name in library} == {"tfdeterminism"}
    assert metadata["Version"] == about["Version"]
    needed = metadata.get_all("Requires-Dist", [])
    assert f"tfdeterminism=={about['Version']}" in needed
    assert f"tfdet-vgpu=={about['Version']}; extra == 'vgpu'" in needed


def test_a_wheel_from_a_checkout_depends_on_the_checkout(checkout: Project, tmp_path: Path) -> None:
    """`pip install .` finds tfdeterminism in the checkout, since no index has it."""
    needed = contents(build(checkout.root, tmp_path, release=False))[1].get_all("Requires-Dist", [])
    assert [text for text in needed if text.startswith("tfdeterminism")] == [
        f"tfdeterminism @ {checkout.runtime.as_uri()}"
    ]


@pytest.mark.parametrize("folder", [".", "runtime"])
def test_a_published_wheel_names_the_repository_that_published_it(
    checkout: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    assert contents(build(checkout.root / folder, tmp_path / "local"))[1].get_all("Project-URL") is None
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://example.org")
    monkeypatch.setenv("GITHUB_REPOSITORY", "some/where")
    urls = contents(build(checkout.root / folder, tmp_path / "published"))[1].get_all("Project-URL") or []
    assert "Source, https://example.org/some/where" in urls


@pytest.mark.parametrize(
    ("document", "folder"),
    [
        ("README.md", "."),
        ("docs/how-to/make-a-program-deterministic.md", "."),
        ("runtime/README.md", "dist"),
        ("recipe", "."),
    ],
)
def test_documented_install_commands_work(
    checkout: Project, wheel: Path, tmp_path: Path, document: str, folder: str
) -> None:
    """Each command is run unchanged in a fresh environment without a package index."""
    copy_folder = tmp_path / "checkout"
    (copy_folder / "dist").mkdir(parents=True)
    shutil.copytree(checkout.root / "scripts", copy_folder / "scripts")  # they look for the checkout beside them
    for entry in checkout.root.iterdir():
        if entry.name not in ("dist", "scripts"):
            (copy_folder / entry.name).symlink_to(entry)
    text = (
        recipe_text(load_status(checkout), "tf2.21") if document == "recipe" else (copy_folder / document).read_text()
    )
    commands = re.findall(r"^(?:\$ |#   |)((?:scripts/build-wheel|pip install \S+\.whl\b).*)$", text, re.M)
    assert commands
    if not commands[0].startswith("scripts/build-wheel"):  # whoever reads the wheel's own text has the wheel
        (copy_folder / "dist" / wheel.name).symlink_to(wheel)
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    environ = {"PATH": f"{venv}/bin:/usr/bin:/bin", "HOME": str(tmp_path), "PIP_NO_INDEX": "1"}
    environ["PIP_CONFIG_FILE"] = os.devnull
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", command], cwd=copy_folder / folder, env=environ, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    ask = "import importlib.metadata as m, tfdeterminism; print(m.version('tfdeterminism'), tfdeterminism.__file__)"
    done = subprocess.run(
        [venv / "bin" / "python", "-c", ask], cwd=tmp_path, env=environ, capture_output=True, text=True
    )
    version, path = done.stdout.split()
    assert version == wheel.name.split("-")[1] and path.startswith(str(venv))


def test_no_document_advises_to_install_the_predecessor(checkout: Project) -> None:
    """pip installs an empty package under the predecessor's name, tensorflow-determinism."""
    texts = [*checkout.root.glob("*.md"), *checkout.root.glob("docs/**/*.md"), *checkout.runtime.rglob("*.md")]
    texts += [*checkout.runtime.rglob("*.py"), *(checkout.root / "src").rglob("*.py")]
    texts += [*(checkout.root / "src").rglob("*.j2"), *checkout.runtime.rglob("*.toml")]
    commands = [
        path
        for path in texts
        if re.search(r"install tensorflow.determinism|name = .tensorflow.determ", path.read_text())
    ]
    assert commands == []


@pytest.mark.parametrize("version", ["3.7", "3.13"])
def test_the_wheel_installs_alone_and_reports_missing_tensorflow(wheel: Path, version: str, tmp_path: Path) -> None:
    """The environment has nothing but the pip of its Python."""
    python = find_python(version)
    if python is None:
        pytest.skip(f"no CPython {version} on this machine")
    subprocess.run([python, "-m", "venv", tmp_path / "venv"], check=True)
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [tmp_path / "venv" / "bin" / "python", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)

    installed = run("-m", "pip", "--isolated", "install", "--no-index", wheel)
    assert installed.returncode == 0, installed.stderr
    assert run("-m", "pip", "check").returncode == 0
    assert "locate" in run("-m", "tfdeterminism.trace", "--help").stdout
    done = run("-c", "import tfdeterminism; tfdeterminism.enable_determinism(seed=1)")
    assert "No module named 'tensorflow'" in done.stderr


@pytest.mark.tensorflow
@pytest.mark.parametrize("key", weekly.select_for_today(["tf1.14-python3.6", "tf2.0", "tf2.21"], all_values=TRAINED))
def test_the_installed_wheel_trains_deterministically(
    wheel: Path, python_of: Callable[[str], Path], key: str, tmp_path: Path
) -> None:
    python = python_of(key)
    pip = subprocess.run([python, "-c", BUNDLED_PIP], check=True, capture_output=True, text=True).stdout.strip()
    if "python3.6" in key:
        assert Path(pip).name.startswith("pip-18."), pip
    target = tmp_path / "site"
    install = [python, f"{pip}/pip", "--disable-pip-version-check", "--isolated", "--no-cache-dir"]
    install += ["install", "--no-index", "--target", target, wheel]
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(install, env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert any(target.glob("tfdeterminism-*.dist-info/METADATA"))

    environ |= {"PYTHONPATH": str(target), "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONHASHSEED": "0"}
    done = subprocess.run([python, TRAINING], env=environ, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    path, first, second = done.stdout.splitlines()[-3:]
    assert path == os.path.join(target, "tfdeterminism")
    assert len(first) == 64 and first == second, done.stdout + done.stderr
