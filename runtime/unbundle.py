"""Check, unpack and run a bundle of tfdet on this host.  Needs a CPython from 3.6 on and nothing else.

    python3 unbundle.py doctor    what this host has, and what is missing
    python3 unbundle.py unpack    check every part and unpack
    python3 unbundle.py run       unpack if that is still to do, run the suite, keep its records

Exit codes: 0 as claimed; 1 what ran contradicts a claim; 2 wrong usage or damaged parts; 3 the run failed, or this host
lacks something; 4 the asked device is not there; 130 stopped.
"""

# Every Python back to 2.7 must be able to read this file, or it could not say which Python it wants.
import sys

if sys.version_info < (3, 6):
    sys.stderr.write(
        "tfdet: this is Python %d.%d; unbundle.py needs CPython 3.6 or later\n"
        "  Call it with another one: python3.12 unbundle.py ...\n" % tuple(sys.version_info[:2])
    )
    sys.exit(3)

import argparse
import collections
import concurrent.futures
import contextlib
import ctypes
import errno
import fcntl
import glob
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time

SCHEMA = 1
BLOCK = 1 << 20
MIB, GIB = 1 << 20, 1 << 30
ZEROS = bytes(1 << 16)
# A manifest comes from a stranger: what tfdet never writes is refused before anything is believed.
MEMBER = 64 << 20  # bytes that one compressed piece unpacks to at most
DICTIONARY = 256 << 20  # bytes that unpacking it may take beside that
LARGEST = 1 << 50
LONGEST_MANIFEST = 256 << 20
SPARE = 64 << 20  # holes are counted to the nearest block
# Bytes of free memory below which a run has no chance: TensorFlow, and with a GPU CUDA's libraries.
MEMORY = {"cpu": 3 * GIB // 2, "gpu": 4 * GIB}
# What of the caller's shell the suite may see.
PASSED = ("PATH", "HOME", "LANG", "TMPDIR", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "TF_ENABLE_ONEDNN_OPTS")

# Without the host's site-packages: what runs is what the bundle holds.  TensorFlow 1.x asks where packages lie.
START = ("import runpy, site, sys; site.USER_SITE = sys.argv.pop(1); "
         "runpy.run_module('tfdet_probe', run_name='__main__', alter_sys=True)")

Gpu = collections.namedtuple("Gpu", "name capability mebibytes")
Nvidia = collections.namedtuple("Nvidia", "driver gpus")
Check = collections.namedtuple("Check", "name state detail advice code")


class Stop(Exception):
    """An expected error: a line of cause, a line of advice, an exit code."""

    def __init__(self, code, cause, advice):
        Exception.__init__(self, cause)
        self.code, self.cause, self.advice = code, cause, advice


# --- what a manifest may say --------------------------------------------------------------------------------


def matches(pattern):
    form = re.compile("(?:" + pattern + r")\Z")
    return lambda value: isinstance(value, str) and form.match(value) is not None


def count(most):
    return lambda value: type(value) is int and 0 <= value <= most


def text(most):
    """What a terminal shows as it stands, and a record takes."""
    return lambda value: isinstance(value, str) and len(value) <= most and value.isprintable()


def flag(value):
    return value is True or value is False


def maybe(form):
    return lambda value: value is None or form(value)


def many(form):
    return lambda value: isinstance(value, list) and all(form(item) for item in value)


def one_with(**fields):
    return lambda value: isinstance(value, dict) and all(n in value and form(value[n]) for n, form in fields.items())


def piece(value):
    """Number of a file, its first byte, how many."""
    return isinstance(value, list) and len(value) == 3 and all(count(LARGEST)(number) for number in value)


VERSION = r"\d{1,9}(\.\d{1,9}){0,9}"
SHA256 = matches("[0-9a-f]{64}")
FIELDS = {
    "environment": matches("[A-Za-z0-9][A-Za-z0-9._-]{0,119}"),
    "device": matches("cpu|gpu"),
    "python": matches(r"3\.\d{1,2}"),
    "glibc": matches(VERSION),
    "min_driver": maybe(matches(VERSION)),
    "compute_capability": maybe(matches(r"\d{1,2}\.\d")),
    "brings_cuda": flag,
    "host_libraries": many(matches(r"lib[A-Za-z0-9_+-]{1,99}\.so(\." + VERSION + ")?")),
    "trimmed": many(text(600)),
    "stubbed": many(text(600)),
    "left_out": many(text(600)),
    "from_host": many(text(600)),
    "disk": count(LARGEST),
    "parts": many(one_with(name=matches("[A-Za-z0-9][A-Za-z0-9._-]{0,199}"), size=count(LARGEST), sha256=SHA256)),
    "members": many(one_with(packed=count(LARGEST), pieces=many(piece))),
    "files": many(one_with(path=matches(r"[\s\S]*"), size=count(LARGEST), sha256=SHA256, executable=flag)),
}


def fault(manifest):
    """What it says that tfdet never writes, in words; None where there is nothing of the kind."""
    for name, form in FIELDS.items():
        if name not in manifest:
            return "it does not say {}".format(name)
        if not form(manifest[name]):
            return "what it says of {} has not the form that tfdet writes".format(name)
    return strange_names(manifest) or strange_sizes(manifest)


def strange_names(manifest):
    for name in (f["path"] for f in manifest["files"]):
        if not is_inside(name):
            return "the manifest names a file outside of its folder: {!a}".format(name)
        if not name.isprintable() or len(name) > 4000:
            return "the manifest names a file as tfdet never does: {!a}".format(name[:100])
    paths = [f["path"] for f in manifest["files"]] + ["manifest.json"]
    folders = {path[:at] for path in paths for at in range(len(path)) if path[at] == "/"}
    parts = [part["name"] for part in manifest["parts"]]
    if len(set(paths)) != len(paths) or len(set(parts)) != len(parts):
        return "the manifest names a file twice"
    return "the manifest names a file that is a folder, too" if folders & set(paths) else None


def is_inside(name):
    return not any(step in ("", ".", "..") or "\\" in step or "\0" in step for step in name.split("/"))


def strange_sizes(manifest):
    """Every byte of every file comes from the parts, once: no size is taken on trust."""
    if sum(member["packed"] for member in manifest["members"]) != sum(part["size"] for part in manifest["parts"]):
        return "its parts are not as large as what they hold"
    files, filled = manifest["files"], [0] * len(manifest["files"])
    for member in manifest["members"]:
        if sum(size for _, _, size in member["pieces"]) > MEMBER:
            return "one of its members is larger than tfdet makes them"
        for number, first, size in member["pieces"]:
            if number >= len(files) or first != filled[number]:
                return "its members do not fit its files"
            filled[number] += size
    return None if filled == [f["size"] for f in files] else "its files are not as large as what the parts hold of them"


# --- the bundle ---------------------------------------------------------------------------------------------


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


def checksum(manifest):
    content = {name: value for name, value in manifest.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()


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


# --- unpacking ----------------------------------------------------------------------------------------------


def unpack(bundle, into):
    """Check and unpack into the folder `into`: all of it, or nothing stays."""
    into = os.path.abspath(into)
    parent = os.path.dirname(into)
    try:
        if not os.path.isdir(parent):
            os.makedirs(parent)
        lock = open(into + ".lock", "a")
    except (IOError, OSError) as error:
        raise Stop(3, "{}: {}".format(into, error.strerror), "Name a folder of yours: --into DIR.")
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two at once: the second finds it done
        if is_unpacked(bundle, into):
            return
        if os.path.lexists(into):
            raise Stop(2, "{} is there and is not this bundle unpacked".format(into), "Name another: --into DIR.")
        bundle.check_parts()
        for left in glob.glob(glob.escape(into) + ".unpacking-*"):  # of one that was killed
            shutil.rmtree(left, ignore_errors=True)
        check_room(bundle, parent)
        work = tempfile.mkdtemp(prefix=os.path.basename(into) + ".unpacking-", dir=parent)
        try:
            write_files(bundle, work)
            os.chmod(work, 0o755)
            os.rename(work, into)
        except EnvironmentError as error:
            if error.errno == errno.ENOSPC:
                raise Stop(3, "{}: no space left".format(parent), "Free some space; nothing half unpacked stays.")
            raise Stop(3, "{}: {}".format(error.filename or work, error.strerror), "Nothing half unpacked stays.")
        finally:
            shutil.rmtree(work, ignore_errors=True)


def is_unpacked(bundle, into):
    """The manifest is written last, and the folder is renamed after that: where it is, all is."""
    try:
        return read_manifest(os.path.join(into, "manifest.json")).get("checksum") == bundle["checksum"]
    except (OSError, ValueError):
        return False


def check_room(bundle, folder):
    needed, free = bundle["disk"] + SPARE, shutil.disk_usage(folder).free
    if free < needed:
        raise Stop(
            3,
            "{}: {:.1f} GiB free, unpacked it takes {:.1f}".format(folder, free / GIB, needed / GIB),
            "Free some space, or name a folder on another disk: --into DIR.",
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


class Progress(object):
    """One line that rewrites itself on a terminal; elsewhere a line at the end."""

    def __init__(self, what, total):
        self.what, self.total, self.done, self.start = what, total, 0, time.time()
        self.live = sys.stderr.isatty()

    def add(self, size):
        self.done += size
        if self.live:
            spent = time.time() - self.start
            left = spent * (self.total - self.done) / max(1, self.done)
            sys.stderr.write(
                "\r\x1b[K{}: {:.0f} %, {:.0f} s left".format(self.what, 100.0 * self.done / max(1, self.total), left)
            )
            sys.stderr.flush()

    def end(self):
        sys.stderr.write(
            "{}{}: {:.0f} MiB in {:.0f} s\n".format(
                "\r\x1b[K" if self.live else "", self.what, self.done / MIB, time.time() - self.start
            )
        )


# --- the host -----------------------------------------------------------------------------------------------


def checks(bundle, device):
    """What the bundle needs of this host, and what was found."""
    yield check_processor()
    yield check_libc(bundle)
    yield check_python(bundle)
    yield check_memory(device)
    if device == "gpu":
        nvidia = nvml()
        yield check_driver(bundle, nvidia)
        yield check_gpu(bundle, nvidia)
        yield check_host_libraries(bundle)


def require(found):
    for check in found:
        if check.state == "missing":
            raise Stop(check.code, "{}: {}".format(check.name, check.detail), check.advice)


def ok(name, detail):
    return Check(name, "ok", detail, "", 0)


def missing(name, code, detail, advice):
    return Check(name, "missing", detail, advice, code)


def check_processor():
    name, machine = "processor", platform.machine()
    if machine not in ("x86_64", "AMD64"):
        return missing(name, 3, "{}, the bundle is for x86_64".format(machine), "Take the bundle to another host.")
    if "avx" not in processor_flags():
        return missing(name, 3, "no AVX, which TensorFlow is built with", "Take the bundle to a newer host.")
    return ok(name, machine)


def processor_flags():
    found = re.search(r"^flags\s*:\s*(.+)$", read_text("/proc/cpuinfo"), re.M)
    return found.group(1).split() if found else ["avx"]


def check_libc(bundle):
    name, least = "glibc", bundle["glibc"]
    try:
        found = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()[-1]
    except (AttributeError, IndexError, OSError, ValueError):
        return missing(name, 3, "not there, the packages need {}".format(least), "Take the bundle to another host.")
    if numbers(found) < numbers(least):
        return missing(
            name, 3, "{} is too old, the packages need {}".format(found, least), "Take the bundle to a newer host."
        )
    return ok(name, "{} (needs {})".format(found, least))


def check_python(bundle):
    name, wanted = "Python", bundle["python"]
    found = find_python(wanted)
    if found is None:
        here = "{}.{}".format(*sys.version_info[:2])
        return missing(
            name,
            3,
            "{} here, the bundle is for CPython {}".format(here, wanted),
            "Put python{0} on the PATH, or bundle again: tfdet bundle {1} --python {2}".format(
                wanted, bundle["environment"], here
            ),
        )
    return ok(name, "{} ({})".format(wanted, found))


def find_python(version):
    """A CPython of this minor: the one that runs this, or one on the PATH."""
    if "{}.{}".format(*sys.version_info[:2]) == version and platform.python_implementation() == "CPython":
        return sys.executable
    ask = "import platform, sys; print(platform.python_implementation(), '%d.%d' % sys.version_info[:2])"
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, "python" + version)
        if os.access(path, os.X_OK) and output([path, "-c", ask]).split() == ["CPython", version]:
            return path
    return None


def check_memory(device):
    name, least = "memory", MEMORY[device]
    found = re.search(r"^MemAvailable:\s*(\d+) kB", read_text("/proc/meminfo"), re.M)
    if not found:
        return Check(name, "warn", "how much is free is unknown", "", 0)
    free = int(found.group(1)) << 10
    detail = "{:.1f} GiB free".format(free / GIB)
    if free < least:
        return missing(name, 3, "{}, a run takes {:.1f}".format(detail, least / GIB), "End something else first.")
    return ok(name, detail)


def check_driver(bundle, nvidia):
    name, least = "driver", bundle["min_driver"]
    if nvidia is None:
        return missing(
            name,
            4,
            "no NVIDIA driver answers",
            "Install driver {} or newer, or ask for --device cpu.".format(least or "for your GPU"),
        )
    if least and numbers(nvidia.driver) < numbers(least):
        return missing(
            name,
            4,
            "{} is too old".format(nvidia.driver),
            "Install driver {} or newer, or ask for --device cpu.".format(least),
        )
    return ok(name, "{}{}".format(nvidia.driver, " (needs {})".format(least) if least else ""))


def check_gpu(bundle, nvidia):
    name, wanted = "GPU", bundle["compute_capability"]
    if bundle["device"] != "gpu":
        return missing(name, 4, "this bundle is for the CPU", "Ask for --device cpu, or bundle with --device gpu.")
    if nvidia is None or not nvidia.gpus:
        return missing(name, 4, "none is visible", "See nvidia-smi, or ask for --device cpu.")
    named = ", ".join("{} ({}, {} GiB)".format(g.name, g.capability, g.mebibytes >> 10) for g in nvidia.gpus)
    if wanted and not any(runs_on(wanted, gpu.capability) for gpu in nvidia.gpus):
        return missing(
            name,
            4,
            "{}; the bundle holds code for {} only".format(named, wanted),
            "Bundle again with --compute-capability {}.".format(nvidia.gpus[0].capability),
        )
    return ok(name, named)


def runs_on(code, capability):
    """Machine code runs on its own major version, from its minor on."""
    return code.split(".")[0] == capability.split(".")[0] and numbers(code) <= numbers(capability)


def check_host_libraries(bundle):
    name, wanted = "CUDA libraries", bundle["host_libraries"]
    if not wanted:
        return ok(
            name,
            "all in the bundle"
            if bundle["brings_cuda"]
            else "the host's own: {}".format("; ".join(bundle["from_host"])),
        )
    found = host_libraries(bundle)
    lacking = [soname for soname in wanted if soname in opened(wanted) and soname not in found]
    if lacking:
        return missing(
            name,
            4,
            "{} not found on this host".format(", ".join(lacking)),
            "Name their folder in LD_LIBRARY_PATH, or bundle without --use-host-libs.",
        )
    return ok(name, "; ".join(said_of(found)))


def opened(sonames):
    """Those that TensorFlow opens by name; cuDNN's others are opened by cuDNN where an op needs them."""
    return [soname for soname in sonames if not soname.startswith("libcudnn_")]


def host_libraries(bundle):
    """{soname: the host's file}: of that very name, or else of another major version."""
    folders = library_folders(bundle)
    found = {}
    for soname in bundle["host_libraries"]:
        stem = soname.split(".so")[0] + ".so"
        exact = [os.path.join(folder, soname) for folder in folders if os.path.exists(os.path.join(folder, soname))]
        others = [
            path
            for folder in folders
            for path in glob.glob(os.path.join(glob.escape(folder), stem + ".*"))
            if re.search(r"\.so\.\d+$", path)
        ]
        if exact or others:
            found[soname] = exact[0] if exact else max(others, key=lambda path: numbers(path.rsplit(".so.", 1)[1]))
    return found


def said_of(found):
    """What a record says of the host's libraries: their names with the full version, never their folders."""
    return ["{}: {}".format(soname, os.path.basename(os.path.realpath(path))) for soname, path in sorted(found.items())]


def library_folders(bundle):
    folders = [f for f in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if f]
    folders += [
        os.path.dirname(path)
        for path in re.findall(r"=> (/\S+)", output(["ldconfig", "-p"]) or output(["/sbin/ldconfig", "-p"]))
    ]
    folders += sorted(glob.glob("/usr/local/cuda*/lib64")) + ["/usr/lib/x86_64-linux-gnu", "/usr/lib64"]
    python = find_python(bundle["python"])
    ask = "import site, sys; print('\\n'.join(site.getsitepackages() + [site.getusersitepackages()]))"
    for site in output([python, "-c", ask]).splitlines() if python else []:
        folders += sorted(glob.glob(os.path.join(glob.escape(site), "nvidia", "*", "lib")))
    return list(collections.OrderedDict.fromkeys(folders))


def nvml():
    """What NVIDIA's management library says of driver and GPUs; None without a driver."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
        if library.nvmlInit_v2() != 0:
            return None
    except (OSError, AttributeError):
        return None
    try:
        count = ctypes.c_uint()
        library.nvmlDeviceGetCount_v2(ctypes.byref(count))
        return Nvidia(
            _nvml_text(library.nvmlSystemGetDriverVersion), [_nvml_gpu(library, n) for n in range(count.value)]
        )
    finally:
        library.nvmlShutdown()


def _nvml_gpu(library, number):
    handle, major, minor = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
    memory = (ctypes.c_ulonglong * 3)()  # total, free, used: bytes
    library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(number), ctypes.byref(handle))
    library.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(major), ctypes.byref(minor))
    library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
    name = _nvml_text(library.nvmlDeviceGetName, handle)
    return Gpu(name, "{}.{}".format(major.value, minor.value), memory[0] >> 20)


def _nvml_text(function, *arguments):
    text = ctypes.create_string_buffer(128)
    function(*(arguments + (text, ctypes.c_uint(len(text)))))
    return text.value.decode("ascii", "replace")


def numbers(version):
    return tuple(int(part) for part in re.findall(r"\d+", version))


def read_text(path):
    try:
        with open(path, errors="replace") as source:
            return source.read()
    except (IOError, OSError):
        return ""


def output(command):
    try:
        return subprocess.check_output(command, stderr=subprocess.DEVNULL, timeout=60).decode("utf-8", "replace")
    except (OSError, subprocess.SubprocessError):
        return ""


# --- the run ------------------------------------------------------------------------------------------------


def run(bundle, into, options, started):
    """The suite in the unpacked bundle; the probe's exit code."""
    python = find_python(bundle["python"])
    with host_links(bundle, options.device) as (links, from_host):
        with facts_file(bundle, from_host) as facts:
            command = [python, "-S", "-s", "-c", START, os.path.join(into, "site")]
            command += ["--plan", os.path.join(into, "plan.json"), "--suite", os.path.join(into, "suite")]
            command += ["--out", os.path.abspath(options.out)]
            command += probe_arguments(options, started) + ["--parent", str(os.getpid())]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment(into, links, facts))
            return wait(process)


def probe_arguments(options, started):
    gpu = options.device == "gpu"
    arguments = [
        "--device",
        options.device,
        "--timeout",
        str(options.timeout),
        "--repeats",
        str(options.repeats or (50 if gpu else 10)),
        "--relaunches",
        str(options.relaunches or (3 if gpu else 2)),
        "--memory",
        str(options.memory or (16384 if gpu else 4096)),
    ]
    for source in options.source or []:
        arguments += ["--source", source]
    for solution in options.solution or []:
        arguments += ["--solution", solution]
    if options.minutes:
        arguments += ["--minutes", "{:.3f}".format(max(0.001, options.minutes - (time.time() - started) / 60))]
    return arguments


def environment(into, links, facts):
    site = os.path.join(into, "site")
    kept = {name: os.environ[name] for name in PASSED if name in os.environ}
    libraries = links + sorted(glob.glob(os.path.join(glob.escape(site), "nvidia", "*", "lib")))
    libraries += [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if folder]
    kept.update(
        PYTHONPATH=os.pathsep.join([os.path.join(into, "runtime"), site]), TFDET_ENGINE="bundle", TFDET_BUNDLE=facts
    )
    if libraries:
        kept["LD_LIBRARY_PATH"] = os.pathsep.join(libraries)
    compiler = os.path.join(site, "nvidia", "cuda_nvcc")
    if os.path.isdir(compiler):  # XLA's device library lies there
        kept["XLA_FLAGS"] = "--xla_gpu_cuda_data_dir=" + compiler
    return kept


@contextlib.contextmanager
def host_links(bundle, device):
    """([folders for the loader], [what came from the host]): its libraries under the names TensorFlow asks for."""
    found = host_libraries(bundle) if device == "gpu" else {}
    if not found:
        yield [], list(bundle["from_host"]) if device == "gpu" and not bundle["host_libraries"] else []
        return
    folder = tempfile.mkdtemp(prefix="tfdet-host-")
    try:
        for soname, path in found.items():
            os.symlink(path, os.path.join(folder, soname))
        yield [folder] + sorted({os.path.dirname(path) for path in found.values()}), said_of(found)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def facts_file(bundle, from_host):
    """What every record says of the bundle it was made with."""
    facts = {name: bundle[name] for name in ("compute_capability", "trimmed", "stubbed", "left_out")}
    facts.update(manifest=bundle["checksum"], from_host=from_host)
    handle, path = tempfile.mkstemp(prefix="tfdet-bundle-", suffix=".json")
    try:
        with os.fdopen(handle, "w") as out:
            json.dump(facts, out)
        yield path
    finally:
        os.unlink(path)


def wait(process):
    """The probe's exit code; on Ctrl-C it ends its children itself, and then we go."""
    try:
        code = process.wait()
    except BaseException as stop:
        if not isinstance(stop, KeyboardInterrupt):  # a terminal's Ctrl-C has reached the probe, too
            process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
        raise
    if code < 0:
        raise Stop(3, "the suite was ended by signal {}".format(-code), "Run again: it goes on where it stopped.")
    return code


# --- the command line ---------------------------------------------------------------------------------------


def main(argv=None):
    started = time.time()
    options = parse(argv)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))  # by way of every `finally`
    try:
        return act(options, started)
    except Stop as stop:
        sys.stderr.write("tfdet: {}\n  {}\n".format(stop.cause, stop.advice))
        return stop.code
    except KeyboardInterrupt:
        sys.stderr.write("tfdet: stopped\n  Finished records are kept; running again goes on from there.\n")
        return 130


def act(options, started):
    bundle = Bundle(os.path.dirname(os.path.abspath(__file__)))
    try:
        import lzma  # noqa: F401  (some builds of Python lack it)
    except ImportError:
        raise Stop(
            3, "this Python has no lzma module", "Call another one: python{} unbundle.py".format(bundle["python"])
        )
    device = options.device or bundle["device"]
    into = options.into or os.path.join(bundle.folder, "unpacked-" + bundle["checksum"][:12])
    if options.command == "doctor":
        return doctor(bundle, device, into)
    if options.command == "run":
        options.device = device
        require(checks(bundle, device))  # before minutes are spent on unpacking
    unpack(bundle, into)
    if options.command == "unpack":
        sys.stdout.write(os.path.abspath(into) + "\n")
        return 0
    return run(bundle, os.path.abspath(into), options, started)


def doctor(bundle, device, into):
    sys.stdout.write(
        "{} for CPython {}, made for the {}{}\n".format(
            bundle["environment"],
            bundle["python"],
            bundle["device"],
            ", compute capability " + bundle["compute_capability"] if bundle["compute_capability"] else "",
        )
    )
    found = [check_parts(bundle, into), check_disk(bundle, into)] + list(checks(bundle, device))
    for check in found:
        sys.stdout.write("{:8} {:15} {}\n".format(check.state, check.name, check.detail))
        if check.advice:
            sys.stdout.write("{:24} {}\n".format("", check.advice))
    return next((check.code for check in found if check.code), 0)


def check_parts(bundle, into):
    if is_unpacked(bundle, into):
        return ok("parts", "unpacked already, in {}".format(into))
    try:
        bundle.check_parts()
    except Stop as stop:
        return missing("parts", stop.code, stop.cause, stop.advice)
    return ok("parts", "all {} as they were made".format(len(bundle["parts"])))


def check_disk(bundle, into):
    folder = os.path.abspath(into)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    try:
        if not is_unpacked(bundle, into):
            check_room(bundle, folder)
    except Stop as stop:
        return missing("disk", stop.code, stop.cause, stop.advice)
    return ok("disk", "{:.1f} GiB free".format(shutil.disk_usage(folder).free / GIB))


def parse(argv):
    parser = argparse.ArgumentParser(description="Check, unpack and run this bundle of tfdet.")
    commands = parser.add_subparsers(dest="command", metavar="doctor | unpack | run")
    for name, text in (
        ("doctor", "what this host has, and what is missing"),
        ("unpack", "check the parts and unpack"),
        ("run", "run the suite, the most valuable cells first"),
    ):
        one = commands.add_parser(name, help=text, description=text)
        one.add_argument("--into", metavar="DIR", help="unpack here (default: a folder beside this script)")
        one.add_argument("--device", choices=["gpu", "cpu"], help="default: what the bundle was made for")
        if name == "run":
            run_options(one)
    options = parser.parse_args(argv)
    if options.command is None:
        parser.error("say what to do: doctor, unpack or run")
    return options


def run_options(parser):
    parser.add_argument("--source", action="append", metavar="ID", help="only this source; may be given again")
    parser.add_argument(
        "--solution", action="append", metavar="KEY", help="only this solution, and its control; may be given again"
    )
    parser.add_argument("--minutes", type=positive, help="begin no case after so many minutes; run again to go on")
    parser.add_argument("--repeats", type=int, help="repeats in one process (default: GPU 50, CPU 10)")
    parser.add_argument("--relaunches", type=int, help="fresh processes (default: GPU 3, CPU 2)")
    parser.add_argument("--timeout", type=positive, default=120.0, help="seconds for one process of a case (120)")
    parser.add_argument("--memory", type=int, help="MiB for one process of a case (default: GPU 16384, CPU 4096)")
    parser.add_argument("--out", default="records.jsonl", help="file for the records (default: records.jsonl)")


def positive(text):
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("{} is not a positive number".format(text))
    return value


if __name__ == "__main__":
    sys.exit(main())
