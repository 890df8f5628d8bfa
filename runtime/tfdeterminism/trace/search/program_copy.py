"""The program's folder as it was before, and the copy in which it runs: at the same path in every run."""

import filecmp
import hashlib
import io
import os
import shutil

from ..interpose.kinds.files import kept_path

MAX_BYTES = 2 << 30
MAX_FILES = 50000
_LINKED = (".git", "node_modules")  # folders that no training writes: the copy has a link to them
_PASSED_BY = ("__pycache__", ".ipynb_checkpoints")
_VENV = "pyvenv.cfg"  # of a virtual environment


class TooLargeError(Exception):
    """A folder that is not copied."""


class ProgramCopy(object):
    """root: the user's folder; work: its copy, in which the program runs; temporary: the TMPDIR of runs.

    program: argv of the user's program; sandbox: a new folder for all of it. Raises TooLargeError, OSError.
    """

    def __init__(self, program, sandbox):
        self.root = find_root(program, os.getcwd())
        self._before, self.work, self.temporary, self.kept = (
            os.path.join(sandbox, name) for name in ("before", "work", "tmp", "kept")
        )
        self.outside = set()  # files that did not exist before, and that runs made outside the folder
        self._kept = {}  # those that did, and that runs wrote: where they are kept as they were before
        _require_small(self.root)
        _copy(self.root, self._before)
        _copy(self._before, self.work)
        os.makedirs(self.temporary)
        os.makedirs(self.kept)
        self._first = _stats(self.work)
        self.cwd = self.into_copy(os.getcwd())
        self.program = [self.into_copy(word) for word in program]
        if self.cwd == os.getcwd() and program[0] != "-m":  # the script alone lies in the folder
            self.program[0] = self.into_copy(os.path.realpath(program[0]))

    def into_copy(self, text):
        """A path of the user's as it is in the copy; any other text as it is."""
        full = text if os.path.isabs(text) else None
        if full and (full == self.root or full.startswith(self.root + os.sep)):
            return self.work + full[len(self.root) :]
        return text

    def name_of(self, path):
        """A path in the copy, relative to the folder; any other text as it is."""
        return os.path.relpath(path, self.work) if path.startswith(self.work + os.sep) else path

    def out_of_copy(self, text):
        """Paths of the copy in a text, as they are in the user's folder."""
        return text.replace(self.work, self.root)

    def restore(self):
        """All files as they were before the first run."""
        shutil.rmtree(self.temporary, ignore_errors=True)
        os.makedirs(self.temporary)
        now = _stats(self.work)
        self.restore_only(
            [
                os.path.join(self.work, name)
                for name in set(now) | set(self._first)
                if now.get(name) != self._first.get(name)
            ]
            + sorted(self.outside)
            + sorted(self._kept)
        )
        _remove_new_folders(self._before, self.work)

    def restore_only(self, paths):
        """These files as they were before."""
        for path in paths:
            name = os.path.relpath(path, self.work)
            known = name in self._first
            if path in self._kept:
                shutil.copy2(self._kept[path], path)
                continue
            if os.path.lexists(path) and (known or path in self.outside or not name.startswith(os.pardir)):
                os.remove(path)
            if known:
                folder = os.path.dirname(path)
                if not os.path.isdir(folder):
                    os.makedirs(folder)
                shutil.copy2(os.path.join(self._before, name), path, follow_symlinks=False)

    def changed(self):
        """{path: digest} of the files that are not as before: what a run leaves to the next."""
        found = {
            os.path.join(self.work, name): stat
            for name, stat in _stats(self.work).items()
            if self._first.get(name) != stat
        }
        paths = set(found) | {path for path in self.outside if os.path.isfile(path)}
        paths.update(
            path
            for path, kept in self._kept.items()
            if os.path.isfile(path) and not filecmp.cmp(path, kept, shallow=False)
        )
        return {path: _digest(path) for path in paths}

    def learn_outside(self, rows):
        """rows: LedgerRows of a run without pins: which files did it write outside the folder?"""
        for row in rows:
            if row.kind != "files" or not row.what.startswith("write "):
                continue
            path = row.what[len("write ") :]
            if path.startswith((self.work + os.sep, self.temporary + os.sep, "/dev/", "/proc/")):
                continue
            kept = kept_path(self.kept, path)
            if row.values[:1] == ["'new'"] and path not in self._kept:
                self.outside.add(path)
            elif path not in self.outside and os.path.isfile(kept):
                self._kept[path] = kept

    def was_there(self, name):
        """Was there a file of this name, relative to the folder, before the first run?"""
        return os.path.normpath(name) in self._first

    def python_files(self):
        """The names of the files of Python that were there before the first run."""
        return sorted(name for name in self._first if name.endswith(".py"))

    def patch(self, texts):
        """Change files of the copy, as if they had been so before the first run. texts: {name: text}."""
        self._patched = {}
        for name, text in texts.items():
            kept = os.path.join(self._before, name)
            with io.open(kept, "rb") as source:
                self._patched[name] = source.read()
            self._write(name, text.encode("utf-8", "surrogateescape"))

    def unpatch(self):
        for name, data in self._patched.items():
            self._write(name, data)
        self._patched = {}

    def _write(self, name, data):
        for folder in (self._before, self.work):
            with io.open(os.path.join(folder, name), "wb") as target:
                target.write(data)
        shutil.copystat(os.path.join(self._before, name), os.path.join(self.work, name))
        about = os.lstat(os.path.join(self.work, name))
        self._first[name] = about.st_size, about.st_mtime_ns

    def close(self):
        """Outside the folder, leave all as it was before: remove what runs made, write back what they changed."""
        for path in self.outside:
            if os.path.isfile(path):
                os.remove(path)
        self.restore_only(sorted(self._kept))


def find_root(program, cwd):
    """The folder that is copied: the working directory; the folder that holds both it and the script, if that is
    elsewhere.

    Raises TooLargeError where that is no folder of a program."""
    cwd = os.path.realpath(cwd)
    script = os.path.realpath(os.path.dirname(os.path.abspath(program[0]))) if program[0] != "-m" else cwd
    root = os.path.commonpath([cwd, script])
    if root in ("/", "/tmp", "/home", "/var/tmp", os.path.realpath(os.path.expanduser("~"))):
        if script == root or cwd != root:
            raise TooLargeError("{} is no folder of a program alone".format(root))
        root = script
    return root


def _require_small(folder):
    size = count = 0
    for here, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if not _is_linked(os.path.join(here, one))]
        for name in names:
            try:
                size += os.lstat(os.path.join(here, name)).st_size
            except OSError:
                continue
            count += 1
        if size > MAX_BYTES or count > MAX_FILES:
            raise TooLargeError(
                "{} holds more than {} GiB or {:,} files".format(folder, MAX_BYTES >> 30, MAX_FILES)
            )


def _is_linked(folder):
    return os.path.basename(folder) in _LINKED or os.path.isfile(os.path.join(folder, _VENV))


def _copy(source, target):
    """Copy a folder: files with their times, links as links that lead to the same place."""
    os.makedirs(target)
    for name in sorted(os.listdir(source)):
        path, copied = os.path.join(source, name), os.path.join(target, name)
        if name in _PASSED_BY:
            continue
        if os.path.islink(path) or os.path.isdir(path) and _is_linked(path):
            os.symlink(_link_target(path, source), copied)
        elif os.path.isdir(path):
            _copy(path, copied)
        elif os.path.isfile(path):
            shutil.copy2(path, copied)
    shutil.copystat(source, target)


def _link_target(path, folder):
    if not os.path.islink(path):
        return os.path.abspath(path)
    target = os.readlink(path)
    inside = os.path.isabs(target) or not os.path.normpath(target).startswith(os.pardir)
    return target if inside else os.path.join(os.path.realpath(folder), target)


def _stats(folder):
    """{name: (size, time)} of all files."""
    found = {}
    for here, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if one not in _PASSED_BY]
        for name in names:
            path = os.path.join(here, name)
            try:
                about = os.lstat(path)
            except OSError:
                continue
            found[os.path.relpath(path, folder)] = about.st_size, about.st_mtime_ns
    return found


def _remove_new_folders(before, work):
    for here, folders, _ in os.walk(work, topdown=False):
        for name in folders:
            path = os.path.join(here, name)
            known = os.path.lexists(os.path.join(before, os.path.relpath(path, work)))
            if not known and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)


def _digest(path):
    found = hashlib.sha1()
    try:
        with io.open(path, "rb") as source:
            for block in iter(lambda: source.read(1 << 20), b""):
                found.update(block)
    except (IOError, OSError):
        return "unreadable"
    return found.hexdigest()
