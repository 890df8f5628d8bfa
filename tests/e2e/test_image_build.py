"""tfdet build with a real daemon: the content of the image, the layers that a change rebuilds, failures."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import docker as docker_sdk
import pytest
from e2e_project import KEY, ROOT, copy_project

from tfdet.base.errors import RunFailedError
from tfdet.base.paths import Project
from tfdet.engines import images
from tfdet.matrix.load import Matrix


def docker_run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["docker", "run", "--rm", *arguments], capture_output=True, text=True, check=False)


def test_the_image_contains_the_gpu_wheel(image: str) -> None:
    program = "import tensorflow as tf; print(tf.__version__, tf.test.is_built_with_cuda())"
    process = docker_run("--entrypoint", "/opt/tfdet/python", image, "-c", program)
    assert process.stdout.split() == ["2.0.0", "True"], process.stderr


def test_a_changed_suite_does_not_rebuild_the_layer_of_tensorflow(
    docker: docker_sdk.DockerClient, image: str, base: str, project: Project, matrix: Matrix, tmp_path: Path
) -> None:
    layers_before = docker.images.get(image).attrs["RootFS"]["Layers"]
    changed = copy_project(project.root, tmp_path)
    with (changed.suite("tensorflow") / "test_bias.py").open("a") as suite:
        suite.write("\n# changed\n")
    try:
        images.build(changed, matrix, KEY, base)
        layers_after = docker.images.get(image).attrs["RootFS"]["Layers"]
    finally:
        images.build(project, matrix, KEY, base)
    assert len(layers_before) == len(layers_after)
    assert layers_before[:-1] == layers_after[:-1]
    assert layers_before[-1] != layers_after[-1]


@pytest.mark.parametrize("kind", ["stock", "ngc"])
def test_a_base_image_with_tensorflow_gains_only_pytest(
    docker: docker_sdk.DockerClient, image: str, project: Project, matrix: Matrix, kind: str
) -> None:
    """tfdet:tf2.0 stands in for an image of TensorFlow's project (stock) or of NVIDIA (ngc), whose packages stay."""
    key = f"e2e-{kind}"
    published = matrix.environment(KEY).model_copy(update={"line": kind, "image": image, "digest": "unknown"})
    if kind == "ngc":
        published = published.model_copy(update={"pip": None})
    try:
        images.build(project, replace(matrix, environments={key: published}), key, on_line=print)
        frozen = [
            docker_run("--entrypoint", "/opt/tfdet/python", i, "-m", "pip", "freeze", "--path", _SITE)
            for i in (image, images.tag(key))
        ]
        assert frozen[0].stdout == frozen[1].stdout != ""
        process = docker_run(
            "--entrypoint", "/opt/tfdet/python", images.tag(key), "-c", "import pytest; print(pytest.__file__)"
        )
        assert process.stdout.startswith("/opt/tfdet/site/"), process.stderr
        process = docker_run("--network", "none", images.tag(key), "--device", "gpu")
        assert process.returncode == 4, process.stderr
    finally:
        subprocess.run(["docker", "rmi", "-f", images.tag(key)], capture_output=True, check=False)


_SITE = "/opt/python3.7/lib/python3.7/site-packages"


def test_a_missing_base_image_is_reported(base: str, project: Project, matrix: Matrix) -> None:
    with pytest.raises(RunFailedError, match="tfdet-is-nowhere:1 is missing and cannot be pulled") as caught:
        images.build(project, matrix, KEY, "tfdet-is-nowhere:1")
    assert f"tfdet build {KEY} --base-image" in caught.value.advice


def test_a_base_image_without_the_python_is_reported(base: str, project: Project, matrix: Matrix) -> None:
    with pytest.raises(RunFailedError, match=r"has no CPython 3\.\d+ on its PATH"):
        images.build(project, matrix, "tf2.11", base)


def test_a_base_image_without_tensorflow_is_reported(base: str, project: Project, matrix: Matrix) -> None:
    ngc = next(key for key, e in matrix.environments.items() if e.line == "ngc" and not e.skip_reason)
    with pytest.raises(RunFailedError, match="has no Python 3 with TensorFlow"):
        images.build(project, matrix, ngc, base)


def test_a_download_with_another_hash_is_refused(base: str, matrix: Matrix, tmp_path: Path) -> None:
    project = copy_project(ROOT, tmp_path)
    pins = ["six==1.16.0", "pytest==7.4.4", "tensorflow-gpu==2.0.0"]
    project.lock(KEY, "gpu").write_text("".join(f"{pin} \\\n    --hash=sha256:{'0' * 64}\n" for pin in pins))
    with pytest.raises(RunFailedError, match=r"docker/locks/tf2\.0-gpu\.txt: six") as caught:
        images.build(project, matrix, KEY, base)
    assert caught.value.advice.startswith("Do not use it")
