"""A fleet as manifests: an Indexed Job for each environment, ready for Kueue, and a ConfigMap of its tasks."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from tfdet.fleet.clusters import requested_minutes
from tfdet.fleet.kubernetes_names import check_image_prefix, check_label_value, check_object_name, check_queue_name
from tfdet.fleet.tasks import FleetOptions, Task

VERSION = "1.29"  # the first in which each index has retries of its own
USER = 10001  # of the images: see docker/entrypoint
_RETRIES = 3
# A machine's name is a hash; what a container could tell of itself is its image's.  1: it ran, and contradicts a claim.
_COMMAND = """\
TFDET_MACHINE=$(printf %s "$NODE" | sha256sum | cut -c1-12); export TFDET_MACHINE
/opt/tfdet/python -m tfdet_probe $(cat "/tasks/$JOB_COMPLETION_INDEX")
[ $? -le 1 ]
"""


def manifests(
    name: str, how: FleetOptions, tasks: Iterable[Task], registry: str, volume_claim: str, queue: str | None
) -> dict[str, Any]:
    """registry: what stands before tfdet:ENV.  volume_claim: for the records.  queue: of Kueue, if any.

    UsageError names the option that no cluster would take.
    """
    check_image_prefix("--registry", registry)
    check_object_name("--volume-claim", volume_claim)
    if queue is not None:
        check_queue_name("--queue", queue)
    if how.gpu is not None:
        check_label_value("--gpu", how.gpu)
    places: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        places[task.environment].append(task)
    items = []
    for key, some in places.items():
        called = _name(f"{name}-{key}")
        items += [
            _tasks(called, key, how, some),
            _job(called, f"{registry}tfdet:{key}", how, some, volume_claim, queue),
        ]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _name(text: str) -> str:
    """As Kubernetes wants it: tf2.0 is tf2-0."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-")


def _tasks(called: str, key: str, how: FleetOptions, some: list[Task]) -> dict[str, Any]:
    """The words of each index's command: they hold no blank, so that a shell may split them."""
    words = {
        str(index): " ".join(
            map(shlex.quote, [*how.selection(task.sources).probe_arguments(), "--out", f"/out/{key}-{index}.jsonl"])
        )
        for index, task in enumerate(some)
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": called}, "data": words}


def _job(called: str, image: str, how: FleetOptions, some: list[Task], claim: str, queue: str | None) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": "tfdet"}
    if queue is not None:
        labels["kueue.x-k8s.io/queue-name"] = queue
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": called, "labels": labels},
        "spec": {
            "suspend": queue is not None,  # Kueue starts it
            "completionMode": "Indexed",
            "completions": len(some),
            "parallelism": len(some),
            "backoffLimitPerIndex": _RETRIES,
            "maxFailedIndexes": len(some),
            "podFailurePolicy": {"rules": [
                # A node that is drained or pre-empted is no failure of the task.
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            ]},
            "template": {"metadata": {"labels": labels}, "spec": _pod(called, image, how, some, claim)},
        },
    }  # fmt: skip


def _pod(called: str, image: str, how: FleetOptions, some: list[Task], claim: str) -> dict[str, Any]:
    """Shut in as the docker engine shuts its containers in."""
    asked = {"memory": f"{how.mebibytes}Mi"} | ({"nvidia.com/gpu": "1"} if how.device == "gpu" else {})
    return {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": 60 * max(requested_minutes(task.seconds, 0) for task in some),
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER},
        **({"nodeSelector": {"nvidia.com/gpu.product": how.gpu}} if how.gpu else {}),
        "containers": [{
            "name": "suite",
            "image": image,
            "command": ["/bin/sh", "-c", _COMMAND],
            "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
            "resources": {"requests": {"cpu": "1", **asked}, "limits": asked},
            "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                "capabilities": {"drop": ["ALL"]}},
            "volumeMounts": [{"name": "tasks", "mountPath": "/tasks", "readOnly": True},
                             {"name": "out", "mountPath": "/out"}, {"name": "tmp", "mountPath": "/tmp"}],
        }],
        "volumes": [{"name": "tasks", "configMap": {"name": called}},
                    {"name": "out", "persistentVolumeClaim": {"claimName": claim}},
                    {"name": "tmp", "emptyDir": {"sizeLimit": "2Gi"}}],
    }  # fmt: skip
