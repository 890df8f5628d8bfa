"""The unpacking of the bundle into a folder that appears only once it is complete.

The files are cut into pieces, [index of the file, offset, number of bytes]. A member is some pieces, compressed; the
members, one after another, are cut into the parts, the files that the user copies.
"""

import errno
import fcntl
import glob
import json
import os
import shutil
import tempfile
import threading

from unbundle.bundle import file_sha256, make_thread_pool, read_manifest
from unbundle.errors import GIB, BundleError
from unbundle.progress import Progress

ZEROS = bytes(1 << 16)
DECOMPRESSOR_BYTES = 256 << 20  # memory limit of one decompressor
DISK_MARGIN = 64 << 20  # bytes; holes in files are counted in whole blocks


def unpack(bundle, target):
    """Check the parts and unpack them into the folder `target`; after an error nothing remains there.

    Raises:
        BundleError: a part is damaged, the disk is full, or the folder exists with other content.
    """
    target = os.path.abspath(target)
    parent = os.path.dirname(target)
    try:
        if not os.path.isdir(parent):
            os.makedirs(parent)
        lock = open(target + ".lock", "a")
    except (IOError, OSError) as error:
        advice = "Choose a folder that you can write to: --target FOLDER."
        raise BundleError(3, "{}: {}".format(target, error.strerror), advice)
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second process waits here, and then finds the bundle unpacked
        if is_unpacked(bundle, target):
            return
        if os.path.lexists(target):
            advice = "Choose another folder: --target FOLDER."
            raise BundleError(2, "{} exists and is not this bundle".format(target), advice)
        bundle.check_parts()
        for leftover in glob.glob(glob.escape(target) + ".unpacking-*"):  # left by a process that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        check_disk_space(bundle, parent)
        work = tempfile.mkdtemp(prefix=os.path.basename(target) + ".unpacking-", dir=parent)
        try:
            write_files(bundle, work)
            os.chmod(work, 0o755)
            os.rename(work, target)
        except EnvironmentError as error:
            if error.errno == errno.ENOSPC:
                raise BundleError(3, "{}: no space left".format(parent), "Free some space; no partial files remain.")
            raise BundleError(3, "{}: {}".format(error.filename or work, error.strerror), "No partial files remain.")
        finally:
            shutil.rmtree(work, ignore_errors=True)


def is_unpacked(bundle, target):
    """Return whether the bundle is unpacked there: the manifest is written last, before the folder gets its name."""
    try:
        return read_manifest(os.path.join(target, "manifest.json")).get("checksum") == bundle["checksum"]
    except (OSError, ValueError):
        return False


def check_disk_space(bundle, folder):
    needed, free = bundle["disk"] + DISK_MARGIN, shutil.disk_usage(folder).free
    if free < needed:
        raise BundleError(
            3,
            "{}: {:.1f} GiB free, the unpacked bundle needs {:.1f}".format(folder, free / GIB, needed / GIB),
            "Free some space, or choose a folder on another disk: --target FOLDER.",
        )


def write_files(bundle, folder):
    """Decompress the members, concatenated in the parts, and write their pieces into the files of the manifest."""
    paths = [os.path.join(folder, *entry["path"].split("/")) for entry in bundle["files"]]
    for path, entry in zip(paths, bundle["files"]):
        if not os.path.isdir(os.path.dirname(path)):
            os.makedirs(os.path.dirname(path))
        with open(path, "xb") as out:
            out.truncate(entry["size"])
        os.chmod(path, 0o755 if entry["executable"] else 0o644)
    starts, offset = [], 0
    for member in bundle["members"]:
        starts.append(offset)
        offset += member["packed"]
    work = list(zip(bundle["members"], starts))
    budget = DiskBudget(bundle["disk"] + DISK_MARGIN)
    progress = Progress("unpacking", sum(piece[2] for member in bundle["members"] for piece in member["pieces"]))
    with make_thread_pool() as pool:
        for size in in_order(pool, lambda job: write_member(bundle, job[0], job[1], paths, budget), work):
            progress.add(size)
        progress.end()
        changed_paths = [
            entry["path"]
            for entry, actual_sha256 in zip(bundle["files"], pool.map(file_sha256, paths))
            if actual_sha256 != entry["sha256"]
        ]
    if changed_paths:
        raise BundleError(
            2,
            "{} is not what the manifest says, though its parts are".format(changed_paths[0]),
            "Not a tfdet bundle: rebuild it.",
        )
    with open(os.path.join(folder, "manifest.json"), "w") as out:
        json.dump(bundle.manifest, out, sort_keys=True)


def in_order(pool, function, work):
    """Yield results like pool.map, but cancel the jobs that have not begun if one fails, or on Ctrl-C."""
    futures = [pool.submit(function, job) for job in work]
    try:
        for future in futures:
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


class DiskBudget(object):
    """The number of bytes that may still be written: the manifest's size, checked against the disk's free space."""

    def __init__(self, size):
        self.left, self.lock = size, threading.Lock()

    def consume(self, size):
        with self.lock:
            self.left -= size
            if self.left < 0:
                raise BundleError(2, "the parts hold more than the manifest declares", "Not a tfdet bundle.")


def write_member(bundle, member, start, paths, budget):
    """Decompress one member, write its pieces into their files, and return the number of bytes written.

    Blocks of zeros stay holes.

    Args:
        bundle: the Bundle.
        member: its entry of the manifest.
        start: the offset of its first byte in the concatenated parts.
        paths: of the manifest's files.
        budget: the DiskBudget.

    Returns:
        The number of bytes written.
    """
    import lzma

    size = sum(piece[2] for piece in member["pieces"])
    try:
        unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=DECOMPRESSOR_BYTES)
        content = unpacker.decompress(bundle.read(start, member["packed"]), max_length=size + 1)
    except (lzma.LZMAError, EOFError) as error:
        raise BundleError(2, "a part cannot be decompressed: {}".format(error), "Rebuild the bundle.")
    if len(content) != size:
        raise BundleError(
            2, "a part holds {} bytes where the manifest says {}".format(len(content), size), "Rebuild the bundle."
        )
    offset = 0
    for number, file_offset, length in member["pieces"]:
        write_piece(paths[number], file_offset, memoryview(content)[offset : offset + length], budget)
        offset += length
    return size


def write_piece(path, file_offset, content, budget):
    with open(path, "r+b") as out:
        for offset in range(0, len(content), len(ZEROS)):
            block = content[offset : offset + len(ZEROS)]
            if block != ZEROS[: len(block)]:
                budget.consume(len(block))
                out.seek(file_offset + offset)
                out.write(block)
