"""The schema of a manifest, which is untrusted input: every field is checked before it is used.

`string(600)`, `list_of(...)`, `object_with(...)` and the like are functions that return a predicate of a value, as a
keyword of JSON Schema does.
"""

import re

from tfdet_common.bundle_format import MAX_MEMBER_BYTES

MAX_SIZE = 1 << 50


def pattern(expression):
    compiled = re.compile("(?:" + expression + r")\Z")
    return lambda value: isinstance(value, str) and compiled.match(value) is not None


def integer(maximum):
    return lambda value: type(value) is int and 0 <= value <= maximum


def string(max_length):
    """Return a predicate of printable text: a terminal shows it unchanged, and a record may contain it."""
    return lambda value: isinstance(value, str) and len(value) <= max_length and value.isprintable()


def boolean(value):
    return value is True or value is False


def optional(is_valid):
    return lambda value: value is None or is_valid(value)


def list_of(is_valid):
    return lambda value: isinstance(value, list) and all(is_valid(item) for item in value)


def object_with(**fields):
    return lambda value: isinstance(value, dict) and all(
        name in value and is_valid(value[name]) for name, is_valid in fields.items()
    )


def piece(value):
    """Return whether a value is [index of a file, offset of a byte, number of bytes]."""
    return isinstance(value, list) and len(value) == 3 and all(integer(MAX_SIZE)(number) for number in value)


# The files are concatenated into `members`, each compressed by itself; the compressed members, one after another, are
# cut into the `parts`.  As texts, what the bundle lacks: trimmed (parts of files), stubbed (files and modules that are
# replaced by empty ones), left_out (what is not packed); from_host: what it uses of the host; disk: bytes that it needs
# unpacked; packed: compressed bytes of a member.
VERSION = r"\d{1,9}(\.\d{1,9}){0,9}"
SHA256 = pattern("[0-9a-f]{64}")
FIELDS = {
    "environment": pattern("[A-Za-z0-9][A-Za-z0-9._-]{0,119}"),
    "device": pattern("cpu|gpu"),
    "python": pattern(r"3\.\d{1,2}"),
    "glibc": pattern(VERSION),
    "min_driver": optional(pattern(VERSION)),
    "compute_capability": optional(pattern(r"\d{1,2}\.\d")),
    "brings_cuda": boolean,
    "host_libraries": list_of(pattern(r"lib[A-Za-z0-9_+-]{1,99}\.so(\." + VERSION + ")?")),
    "host_packages": list_of(pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}==[A-Za-z0-9][A-Za-z0-9.!_-]{0,99}")),
    "trimmed": list_of(string(600)),
    "stubbed": list_of(string(600)),
    "left_out": list_of(string(600)),
    "from_host": list_of(string(600)),
    "disk": integer(MAX_SIZE),
    "parts": list_of(
        object_with(name=pattern("[A-Za-z0-9][A-Za-z0-9._-]{0,199}"), size=integer(MAX_SIZE), sha256=SHA256)
    ),
    "members": list_of(object_with(packed=integer(MAX_SIZE), pieces=list_of(piece))),
    "files": list_of(object_with(path=pattern(r"[\s\S]*"), size=integer(MAX_SIZE), sha256=SHA256, executable=boolean)),
}


def find_fault(manifest):
    """Return why tfdet cannot have written this manifest, as a phrase for people; None if it can."""
    for name, is_valid in FIELDS.items():
        if name not in manifest:
            return "the field {} is missing".format(name)
        if not is_valid(manifest[name]):
            return "the field {} is not in the form that tfdet writes".format(name)
    return path_fault(manifest) or size_fault(manifest)


def path_fault(manifest):
    """Return why the names of files and parts are unsafe or ambiguous; None if they are not."""
    for name in (entry["path"] for entry in manifest["files"]):
        if not is_relative_inside(name):
            return "the manifest names a file outside of its folder: {!a}".format(name)
        if not name.isprintable() or len(name) > 4000:
            return "the manifest names a file that tfdet would not: {!a}".format(name[:100])
    paths = [entry["path"] for entry in manifest["files"]] + ["manifest.json"]
    folders = {path[:index] for path in paths for index in range(len(path)) if path[index] == "/"}
    part_names = [part["name"] for part in manifest["parts"]]
    if len(set(paths)) != len(paths) or len(set(part_names)) != len(part_names):
        return "the manifest names a file twice"
    return "the manifest names a file that is a folder, too" if folders & set(paths) else None


def is_relative_inside(name):
    """Return whether a path is relative and stays inside its folder."""
    return not any(step in ("", ".", "..") or "\\" in step or "\0" in step for step in name.split("/"))


def size_fault(manifest):
    """Return why the sizes are inconsistent; None if each byte of each file has exactly one place in the parts."""
    if sum(member["packed"] for member in manifest["members"]) != sum(part["size"] for part in manifest["parts"]):
        return "its parts and its members differ in size"
    files, filled = manifest["files"], [0] * len(manifest["files"])
    for member in manifest["members"]:
        if sum(size for _, _, size in member["pieces"]) > MAX_MEMBER_BYTES:
            return "a member is larger than {} bytes".format(MAX_MEMBER_BYTES)
        for number, offset, size in member["pieces"]:
            if number >= len(files) or offset != filled[number]:
                return "its members do not match its files"
            filled[number] += size
    return None if filled == [entry["size"] for entry in files] else "its files and the pieces of them differ in size"
