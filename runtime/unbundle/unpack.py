"""All of the bundle unpacked, or nothing of it."""

import errno
import fcntl
import glob
import json
import os
import shutil
import tempfile
import threading

from unbundle.bundle import read_manifest, sha256_of, workers
from unbundle.progress import Progress
from unbundle.stop import GIB, Stop

ZEROS = bytes(1 << 16)
DICTIONARY = 256 << 20  # bytes that unpacking a member may take beside what it unpacks to
SPARE = 64 << 20  # holes are counted to the nearest block


def unpack(bundle, target):
    """Check and unpack into the folder `target`: all of it, or nothing stays."""
    target = os.path.abspath(target)
    parent = os.path.dirname(target)
    try:
        if not os.path.isdir(parent):
            os.makedirs(parent)
        lock = open(target + ".lock", "a")
    except (IOError, OSError) as error:
        raise Stop(3, "{}: {}".format(target, error.strerror), "Name a folder of yours: --target FOLDER.")
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two at once: the second finds it done
        if is_unpacked(bundle, target):
            return
        if os.path.lexists(target):
            raise Stop(2, "{} exists and is not this bundle".format(target), "Name another folder: --target FOLDER.")
        bundle.check_parts()
        for left in glob.glob(glob.escape(target) + ".unpacking-*"):  # of one that was killed
            shutil.rmtree(left, ignore_errors=True)
        check_room(bundle, parent)
        work = tempfile.mkdtemp(prefix=os.path.basename(target) + ".unpacking-", dir=parent)
        try:
            write_files(bundle, work)
            os.chmod(work, 0o755)
            os.rename(work, target)
        except EnvironmentError as error:
            if error.errno == errno.ENOSPC:
                raise Stop(3, "{}: no space left".format(parent), "Free some space; nothing half unpacked stays.")
            raise Stop(3, "{}: {}".format(error.filename or work, error.strerror), "Nothing half unpacked stays.")
        finally:
            shutil.rmtree(work, ignore_errors=True)


def is_unpacked(bundle, target):
    """The manifest is written last, and the folder is renamed after that: where it is, all is."""
    try:
        return read_manifest(os.path.join(target, "manifest.json")).get("checksum") == bundle["checksum"]
    except (OSError, ValueError):
        return False


def check_room(bundle, folder):
    needed, free = bundle["disk"] + SPARE, shutil.disk_usage(folder).free
    if free < needed:
        raise Stop(
            3,
            "{}: {:.1f} GiB free, unpacked it takes {:.1f}".format(folder, free / GIB, needed / GIB),
            "Free some space, or name a folder on another disk: --target FOLDER.",
        )


def write_files(bundle, folder):
    paths = [os.path.join(folder, *f["path"].split("/")) for f in bundle["files"]]
    for path, entry in zip(paths, bundle["files"]):
        if not os.path.isdir(os.path.dirname(path)):
            os.makedirs(os.path.dirname(path))
        with open(path, "xb") as out:
            out.truncate(entry["size"])
        os.chmod(path, 0o755 if entry["executable"] else 0o644)
    starts, at = [], 0
    for member in bundle["members"]:
        starts.append(at)
        at += member["packed"]
    work = list(zip(bundle["members"], starts))
    room = Room(bundle["disk"] + SPARE)
    progress = Progress("unpacking", sum(piece[2] for member in bundle["members"] for piece in member["pieces"]))
    with workers() as pool:
        for size in in_order(pool, lambda job: write_member(bundle, job[0], job[1], paths, room), work):
            progress.add(size)
        progress.end()
        wrong = [e["path"] for e, found in zip(bundle["files"], pool.map(sha256_of, paths)) if found != e["sha256"]]
    if wrong:
        raise Stop(
            2,
            "{} is not what the manifest says, though its parts are".format(wrong[0]),
            "This is no bundle that tfdet made: make it anew.",
        )
    with open(os.path.join(folder, "manifest.json"), "w") as out:
        json.dump(bundle.manifest, out, sort_keys=True)


def in_order(pool, function, work):
    """pool.map that leaves what has not begun when one fails, or on Ctrl-C."""
    futures = [pool.submit(function, job) for job in work]
    try:
        for future in futures:
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


class Room(object):
    """Bytes that may still be written: what was declared, and checked against the disk."""

    def __init__(self, size):
        self.left, self.lock = size, threading.Lock()

    def take(self, size):
        with self.lock:
            self.left -= size
            if self.left < 0:
                raise Stop(2, "the parts hold more than the manifest declares", "This is no bundle that tfdet made.")


def write_member(bundle, member, start, paths, room):
    """Decompress one member and write its pieces where they belong; zeros stay holes.  The bytes written."""
    import lzma

    size = sum(piece[2] for piece in member["pieces"])
    try:
        unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=DICTIONARY)
        content = unpacker.decompress(bundle.read(start, member["packed"]), max_length=size + 1)
    except (lzma.LZMAError, EOFError) as error:
        raise Stop(2, "a part cannot be decompressed: {}".format(error), "Make the bundle anew.")
    if len(content) != size:
        raise Stop(
            2, "a part holds {} bytes where the manifest says {}".format(len(content), size), "Make the bundle anew."
        )
    at = 0
    for number, first, length in member["pieces"]:
        write_piece(paths[number], first, memoryview(content)[at : at + length], room)
        at += length
    return size


def write_piece(path, first, content, room):
    with open(path, "r+b") as out:
        for at in range(0, len(content), len(ZEROS)):
            block = content[at : at + len(ZEROS)]
            if block != ZEROS[: len(block)]:
                room.take(len(block))
                out.seek(first + at)
                out.write(block)
