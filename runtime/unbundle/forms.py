"""What a manifest may say: it comes from a stranger, and what tfdet never writes is refused before it is believed."""

import re

from tfdet_common.bundles import MEMBER

LARGEST = 1 << 50


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
    "host_packages": many(matches(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}==[A-Za-z0-9][A-Za-z0-9.!_-]{0,99}")),
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
