"""The manifest and the parts beside this script."""

import concurrent.futures
import errno
import hashlib
import json
import os
import stat

from tfdet_common.bundles import SCHEMA, checksum
from unbundle.forms import count, fault
from unbundle.stop import Stop

BLOCK = 1 << 20
LONGEST_MANIFEST = 256 << 20


def open_plain(path):
    """A regular file, opened without following a link and without waiting for what is none; OSError otherwise."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "is no plain file", path)
    return os.fdopen(handle, "rb")


def read_manifest(path):
    """The JSON object at `path`; ValueError where there is none, OSError where it cannot be read."""
    with open_plain(path) as source:
        if os.fstat(source.fileno()).st_size > LONGEST_MANIFEST:
            raise ValueError("too long")
        try:
            found = json.loads(source.read(LONGEST_MANIFEST).decode("ascii"))
        except RecursionError:
            raise ValueError("nested too deeply")
    if not isinstance(found, dict):
        raise ValueError("no object")
    return found


class Bundle(object):
    """The manifest beside this script; Stop where it is not what tfdet wrote."""

    def __init__(self, folder):
        self.folder = folder
        path = os.path.join(folder, "manifest.json")
        try:
            self.manifest = read_manifest(path)
            good = self.manifest.get("checksum") == checksum(self.manifest)
        except OSError as error:
            raise Stop(2, "{}: {}".format(path, error.strerror), "It lies beside unbundle.py: carry it here again.")
        except ValueError:
            good = False
        if not good:
            raise Stop(2, "{} is damaged".format(path), "Carry it here again.")
        schema = self.manifest.get("schema")
        if not count(10**6)(schema):
            raise Stop(2, "{}: a bundle of no schema".format(path), "This is no bundle that tfdet made.")
        if schema != SCHEMA:
            raise Stop(
                2,
                "{}: a bundle of schema {}, this script reads {}".format(path, schema, SCHEMA),
                "Use the unbundle.py that was made with it.",
            )
        strange = fault(self.manifest)
        if strange:
            raise Stop(2, "{}: {}".format(path, strange), "This is no bundle that tfdet made; nothing was unpacked.")

    def __getitem__(self, name):
        return self.manifest[name]

    def part_path(self, part):
        return os.path.join(self.folder, part["name"])

    def check_parts(self):
        """Stop that names every part that is missing, swapped, truncated or changed."""
        known = {part["sha256"]: part["name"] for part in self["parts"]}
        with workers() as pool:
            faults = [f for f in pool.map(lambda part: self._fault(part, known), self["parts"]) if f]
        if faults:
            raise Stop(
                2,
                "; ".join(faults),
                "Carry {} here again.".format(
                    "this part" if len(faults) == 1 else "these {} parts".format(len(faults))
                ),
            )

    def _fault(self, part, known):
        path, name = self.part_path(part), part["name"]
        try:
            with open_plain(path) as source:
                size = os.fstat(source.fileno()).st_size
                # What is of no part's size is no part, however long reading it would take.
                found = sha256(source, size) if size in {p["size"] for p in self["parts"]} else None
        except OSError as error:
            if error.errno == errno.ENOENT:
                return "{} is missing".format(name)
            return "{} cannot be read: {}".format(name, error.strerror)
        if found == part["sha256"]:
            return None
        if found in known:
            return "{} holds what belongs into {}: swapped?".format(name, known[found])
        if size != part["size"]:
            return "{} has {} bytes, not {}: {}?".format(
                name, size, part["size"], "truncated" if size < part["size"] else "something was added"
            )
        return "{} was changed on its way: its SHA-256 does not fit".format(name)

    def read(self, start, size):
        """`size` bytes at `start` of the parts laid end to end."""
        found, at = [], 0
        for part in self["parts"]:
            if at + part["size"] > start and size > 0:
                with open_plain(self.part_path(part)) as source:
                    source.seek(start - at)
                    block = source.read(min(size, at + part["size"] - start))
                found.append(block)
                start, size = start + len(block), size - len(block)
            at += part["size"]
        return b"".join(found)


def sha256(source, size):
    """Of the first `size` bytes: a file that grows while it is read has an end."""
    digest = hashlib.sha256()
    for at in range(0, size, BLOCK):
        digest.update(source.read(min(BLOCK, size - at)))
    return digest.hexdigest()


def sha256_of(path):
    with open(path, "rb") as source:
        return sha256(source, os.fstat(source.fileno()).st_size)


def workers():
    return concurrent.futures.ThreadPoolExecutor(min(8, len(os.sched_getaffinity(0))))
