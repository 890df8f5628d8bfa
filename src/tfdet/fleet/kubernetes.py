"""Kubernetes manifests of a fleet: for each environment an Indexed Job, which Kueue can queue, and a ConfigMap.

A fleet is a run of the suite on many machines. A task is a part of it: sources of nondeterminism in one environment.
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from tfdet.fleet.clusters import requested_minutes
from tfdet.fleet.kubernetes_names import check_image_prefix, check_label_value, check_object_name, check_queue_name
from tfdet.fleet.tasks import FleetOptions, Task

VERSION = "1.29"  # the first version of Kubernetes with backoffLimitPerIndex
USER = 10001  # the user ID in the images: see docker/entrypoint
_RETRIES = 3
# The machine's name is a hash of the node's name, which a container does not know.  Exit code 1 is not a failure: the
# suite ran, and contradicts a claim.
_COMMAND = """\
TFDET_MACHINE=$(printf %s "$NODE" | sha256sum | cut -c1-12); export TFDET_MACHINE
/opt/tfdet/python -m tfdet_probe $(cat "/tasks/$JOB_COMPLETION_INDEX")
[ $? -le 1 ]
"""


def manifests(
    name: str, options: FleetOptions, tasks: Iterable[Task], registry: str, volume_claim: str, queue: str | None
) -> dict[str, Any]:
    """Return the manifests as one Kubernetes List.

    registry: prefix of the images tfdet:ENV.  volume_claim: for the records.  queue: of Kueue, if any.
    UsageError for an option that is not a valid name in Kubernetes.
    """
    check_image_prefix("--registry", registry)
    check_object_name("--volume-claim", volume_claim)
    if queue is not None:
        check_queue_name("--queue", queue)
    if options.gpu is not None:
        check_label_value("--gpu", options.gpu)
    by_environment: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        by_environment[task.environment].append(task)
    items = []
    for key, environment_tasks in by_environment.items():
        object_name = _object_name(f"{name}-{key}")
        items += [
            _config_map(object_name, key, options, environment_tasks),
            _job(object_name, f"{registry}tfdet:{key}", options, environment_tasks, volume_claim, queue),
        ]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _object_name(text: str) -> str:
    """Convert a text to a valid name of an object: tf2.0 to tf2-0."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-")


def _config_map(name: str, key: str, options: FleetOptions, tasks: list[Task]) -> dict[str, Any]:
    """Return a ConfigMap with the probe's arguments for each index; without blanks in them, a shell can split them."""
    data = {}
    for index, task in enumerate(tasks):
        arguments = [*options.selection(task.sources).probe_arguments(), "--out", f"/out/{key}-{index}.jsonl"]
        data[str(index)] = " ".join(map(shlex.quote, arguments))
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def _job(
    name: str, image: str, options: FleetOptions, tasks: list[Task], claim: str, queue: str | None
) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": "tfdet"}
    if queue is not None:
        labels["kueue.x-k8s.io/queue-name"] = queue
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "suspend": queue is not None,  # Kueue starts it
            "completionMode": "Indexed",
            "completions": len(tasks),
            "parallelism": len(tasks),
            "backoffLimitPerIndex": _RETRIES,
            "maxFailedIndexes": len(tasks),
            "podFailurePolicy": {"rules": [
                # A drained or preempted node is not a failure of the task.
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            ]},
            "template": {"metadata": {"labels": labels}, "spec": _pod(name, image, options, tasks, claim)},
        },
    }  # fmt: skip


def _pod(name: str, image: str, options: FleetOptions, tasks: list[Task], claim: str) -> dict[str, Any]:
    """Return the pod's spec, with as few privileges as a container of the docker engine has."""
    resources = {"memory": f"{options.mebibytes}Mi"} | ({"nvidia.com/gpu": "1"} if options.device == "gpu" else {})
    return {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": 60 * max(requested_minutes(task.seconds, attempts=0) for task in tasks),
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER},
        **({"nodeSelector": {"nvidia.com/gpu.product": options.gpu}} if options.gpu else {}),
        "containers": [{
            "name": "suite",
            "image": image,
            "command": ["/bin/sh", "-c", _COMMAND],
            "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
            "resources": {"requests": {"cpu": "1", **resources}, "limits": resources},
            "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                "capabilities": {"drop": ["ALL"]}},
            "volumeMounts": [{"name": "tasks", "mountPath": "/tasks", "readOnly": True},
                             {"name": "out", "mountPath": "/out"}, {"name": "tmp", "mountPath": "/tmp"}],
        }],
        "volumes": [{"name": "tasks", "configMap": {"name": name}},
                    {"name": "out", "persistentVolumeClaim": {"claimName": claim}},
                    {"name": "tmp", "emptyDir": {"sizeLimit": "2Gi"}}],
    }  # fmt: skip
