"""The manifest and the parts in the folder of this script.

The parts are the files into which the compressed content is cut; the manifest lists them and what they contain.
The first argument of a BundleError is the exit code: 2 for damaged parts.
"""

import concurrent.futures
import errno
import hashlib
import json
import os
import stat

from tfdet_common.bundle_format import SCHEMA, checksum
from unbundle.errors import BundleError
from unbundle.manifest_schema import find_fault, integer

BLOCK = 1 << 20
MAX_MANIFEST_BYTES = 256 << 20


def open_regular(path):
    """Open a regular file for reading; raise OSError for a link, and, without waiting, for a pipe or device."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "is not a regular file", path)
    return os.fdopen(handle, "rb")


def read_manifest(path):
    """Return the JSON object in a file; ValueError if it contains none, OSError if it cannot be read."""
    with open_regular(path) as source:
        if os.fstat(source.fileno()).st_size > MAX_MANIFEST_BYTES:
            raise ValueError("too long")
        try:
            manifest = json.loads(source.read(MAX_MANIFEST_BYTES).decode("ascii"))
        except RecursionError:
            raise ValueError("nested too deeply")
    if not isinstance(manifest, dict):
        raise ValueError("not a JSON object")
    return manifest


class Bundle(object):
    """The manifest and the parts in the folder of this script; bundle[name] is a field of the manifest.

    Raises:
        BundleError: the manifest is missing, damaged, or not one that tfdet writes.
    """

    def __init__(self, folder):
        self.folder = folder
        path = os.path.join(folder, "manifest.json")
        try:
            self.manifest = read_manifest(path)
            is_intact = self.manifest.get("checksum") == checksum(self.manifest)
        except OSError as error:
            raise BundleError(2, "{}: {}".format(path, error.strerror), "Copy it here again, beside unbundle.py.")
        except ValueError:
            is_intact = False
        if not is_intact:
            raise BundleError(2, "{} is damaged".format(path), "Copy it here again.")
        schema = self.manifest.get("schema")
        if not integer(10**6)(schema):
            raise BundleError(2, "{}: its schema is not a number".format(path), "Not a tfdet bundle.")
        if schema != SCHEMA:
            raise BundleError(
                2,
                "{}: the bundle has schema {}, expected {}".format(path, schema, SCHEMA),
                "Use the unbundle.py that was created with the bundle.",
            )
        fault = find_fault(self.manifest)
        if fault:
            raise BundleError(2, "{}: {}".format(path, fault), "Not a tfdet bundle; nothing was unpacked.")

    def __getitem__(self, name):
        return self.manifest[name]

    def part_path(self, part):
        return os.path.join(self.folder, part["name"])

    def check_parts(self):
        """Raise a BundleError that names every part that is missing, swapped, truncated or changed."""
        names_by_sha256 = {part["sha256"]: part["name"] for part in self["parts"]}
        with make_thread_pool() as pool:
            results = pool.map(lambda part: self._fault(part, names_by_sha256), self["parts"])
            faults = [fault for fault in results if fault]
        if faults:
            raise BundleError(
                2,
                "; ".join(faults),
                "Copy {} here again.".format(
                    "this part" if len(faults) == 1 else "these {} parts".format(len(faults))
                ),
            )

    def _fault(self, part, names_by_sha256):
        path, name = self.part_path(part), part["name"]
        try:
            with open_regular(path) as source:
                size = os.fstat(source.fileno()).st_size
                # A file whose size is no part's size is not read: that could take long.
                actual_sha256 = sha256(source, size) if size in {other["size"] for other in self["parts"]} else None
        except OSError as error:
            if error.errno == errno.ENOENT:
                return "{} is missing".format(name)
            return "{} cannot be read: {}".format(name, error.strerror)
        if actual_sha256 == part["sha256"]:
            return None
        if actual_sha256 in names_by_sha256:
            return "{} holds the content of {}: swapped?".format(name, names_by_sha256[actual_sha256])
        if size != part["size"]:
            return "{} has {} bytes, not {}: {}?".format(
                name, size, part["size"], "truncated" if size < part["size"] else "extended"
            )
        return "{} has changed: its SHA-256 differs from the manifest's".format(name)

    def read(self, start, size):
        """Return `size` bytes from the offset `start` of the concatenated parts."""
        blocks, offset = [], 0
        for part in self["parts"]:
            if offset + part["size"] > start and size > 0:
                with open_regular(self.part_path(part)) as source:
                    source.seek(start - offset)
                    block = source.read(min(size, offset + part["size"] - start))
                blocks.append(block)
                start, size = start + len(block), size - len(block)
            offset += part["size"]
        return b"".join(blocks)


def sha256(source, size):
    """Return the SHA-256 of the first `size` bytes, 64 hex digits: reading a growing file ends, too."""
    digest = hashlib.sha256()
    for offset in range(0, size, BLOCK):
        digest.update(source.read(min(BLOCK, size - offset)))
    return digest.hexdigest()


def file_sha256(path):
    """Return the SHA-256 of a whole file, 64 hex digits."""
    with open(path, "rb") as source:
        return sha256(source, os.fstat(source.fileno()).st_size)


def make_thread_pool():
    """Return a pool of threads, one for each core up to 8.

    Hashing and decompression run outside of the interpreter lock.
    """
    return concurrent.futures.ThreadPoolExecutor(min(8, len(os.sched_getaffinity(0))))
