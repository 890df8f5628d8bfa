"""The copy of the program's folder in which it runs, at the same path in every run, and its initial state."""

import filecmp
import hashlib
import io
import os
import shutil
import tempfile

from ..interpose import kinds
from ..interpose.kinds.files import kept_path

MAX_BYTES = 2 << 30
MAX_FILES = 50000
_LINKED = (".git", "node_modules")  # folders that no training writes: the copy has a link to them
_PASSED_BY = ("__pycache__", ".ipynb_checkpoints")
_VENV = "pyvenv.cfg"  # of a virtual environment


class TooLargeError(Exception):
    """A folder that is too large to be copied."""


class ProgramCopy(object):
    """A copy of the user's folder. root: the folder; work: its copy; temporary: the TMPDIR of runs.

    kept: folder for the original content of files outside the folder, which runs save there before they write to them.

    program: argv of the user's program; sandbox: a new folder for all copies. Raises TooLargeError, OSError.
    """

    def __init__(self, program, sandbox):
        self.root = find_root(program, os.getcwd())
        self._original, self.work, self.temporary, self.kept = (
            os.path.join(sandbox, name) for name in ("before", "work", "tmp", "kept")
        )
        self.outside = set()  # new files that runs created outside the folder
        self._kept_files = {}  # {file outside the folder that runs wrote: path of its original content}
        _require_small(self.root)
        _copy(self.root, self._original)
        _copy(self._original, self.work)
        os.makedirs(self.temporary)
        os.makedirs(self.kept)
        self._initial_stats = _stats(self.work)
        self.cwd = self.into_copy(os.getcwd())
        self.program = [self.into_copy(argument) for argument in program]
        if self.cwd == os.getcwd() and program[0] != "-m":  # the script lies in the folder, the working directory not
            self.program[0] = self.into_copy(os.path.realpath(program[0]))

    def into_copy(self, text):
        """Return the path in the copy of a path of the user's; other texts are returned unchanged."""
        full = text if os.path.isabs(text) else None
        if full and (full == self.root or full.startswith(self.root + os.sep)):
            return self.work + full[len(self.root) :]
        return text

    def name_of(self, path):
        """Return a path in the copy, relative to the folder; other texts are returned unchanged."""
        return os.path.relpath(path, self.work) if path.startswith(self.work + os.sep) else path

    def out_of_copy(self, text):
        """Return a text in which paths of the copy and of its TMPDIR are replaced by the user's."""
        return text.replace(self.work, self.root).replace(self.temporary, tempfile.gettempdir())

    def restore(self):
        """Restore all files to their state before the first run."""
        shutil.rmtree(self.temporary, ignore_errors=True)
        os.makedirs(self.temporary)
        stats = _stats(self.work)
        self.restore_only(
            [
                os.path.join(self.work, name)
                for name in set(stats) | set(self._initial_stats)
                if stats.get(name) != self._initial_stats.get(name)
            ]
            + sorted(self.outside)
            + sorted(self._kept_files)
        )
        _remove_new_folders(self._original, self.work)

    def restore_only(self, paths):
        """Restore these files to their state before the first run."""
        for path in paths:
            name = os.path.relpath(path, self.work)
            is_original = name in self._initial_stats
            if path in self._kept_files:
                shutil.copy2(self._kept_files[path], path)
                continue
            is_ours = is_original or not name.startswith(os.pardir) or path.startswith(self.temporary + os.sep)
            if os.path.lexists(path) and (is_ours or path in self.outside):
                os.remove(path)
            if is_original:
                folder = os.path.dirname(path)
                if not os.path.isdir(folder):
                    os.makedirs(folder)
                shutil.copy2(os.path.join(self._original, name), path, follow_symlinks=False)

    def remove_temporary(self, rows):
        """Remove files and folders whose names a run got from tempfile.  rows: its LedgerRows.

        A later run with the same pinned names would find them taken, as no run does whose names are random.
        """
        names = [row.what for row in rows if row.kind == kinds.TEMPORARY_NAME]
        for folder in (self.temporary, self.work) if names else ():
            for parent, folders, files in os.walk(folder):
                _remove_named(parent, folders, files, names)

    def changed(self):
        """Return {path: digest} of the files that runs created or changed."""
        changed_paths = {
            os.path.join(self.work, name): stat
            for name, stat in _stats(self.work).items()
            if self._initial_stats.get(name) != stat
        }
        paths = set(changed_paths) | {path for path in self.outside if os.path.isfile(path)}
        paths.update(
            path
            for path, kept_file in self._kept_files.items()
            if os.path.isfile(path) and not filecmp.cmp(path, kept_file, shallow=False)
        )
        return {path: _digest(path) for path in paths}

    def carried(self):
        """Return {path: digest} of the files that runs created or changed, and of those that they left in TMPDIR."""
        in_temporary = [os.path.join(folder, name) for folder, _, names in os.walk(self.temporary) for name in names]
        return dict(self.changed(), **{path: _digest(path) for path in in_temporary if os.path.isfile(path)})

    def learn_outside(self, rows):
        """Note the files that a run wrote outside the folder. rows: LedgerRows of a run without pins."""
        for row in rows:
            if row.kind != "files" or not row.what.startswith("write "):
                continue
            path = row.what[len("write ") :]
            if path.startswith((self.work + os.sep, self.temporary + os.sep, "/dev/", "/proc/")):
                continue
            kept_file = kept_path(self.kept, path)
            if row.values[:1] == ["'new'"] and path not in self._kept_files:
                self.outside.add(path)
            elif path not in self.outside and os.path.isfile(kept_file):
                self._kept_files[path] = kept_file

    def existed_before(self, name):
        """Return whether a file of this name, relative to the folder, existed before the first run."""
        return os.path.normpath(name) in self._initial_stats

    def python_files(self):
        """Return the names of the Python files that existed before the first run."""
        return sorted(name for name in self._initial_stats if name.endswith(".py"))

    def patch(self, texts):
        """Edit files of the copy and of its initial state. texts: {name: text}."""
        self._patched = {}
        for name, text in texts.items():
            path = os.path.join(self._original, name)
            with io.open(path, "rb") as source:
                self._patched[name] = source.read()
            self._write(name, text.encode("utf-8", "surrogateescape"))

    def unpatch(self):
        for name, data in self._patched.items():
            self._write(name, data)
        self._patched = {}

    def _write(self, name, data):
        for folder in (self._original, self.work):
            with io.open(os.path.join(folder, name), "wb") as target:
                target.write(data)
        shutil.copystat(os.path.join(self._original, name), os.path.join(self.work, name))
        status = os.lstat(os.path.join(self.work, name))
        self._initial_stats[name] = status.st_size, status.st_mtime_ns

    def close(self):
        """Restore files outside the folder: remove those that runs created, write back those that they changed."""
        for path in self.outside:
            if os.path.isfile(path):
                os.remove(path)
        self.restore_only(sorted(self._kept_files))


def find_root(program, cwd):
    """Return the folder to copy: the working directory, or the folder that holds it and the script.

    Raises TooLargeError if that folder holds more than the program, such as a home directory.
    """
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
    for path, folders, names in os.walk(folder):
        folders[:] = [child for child in folders if not _is_linked(os.path.join(path, child))]
        for name in names:
            try:
                size += os.lstat(os.path.join(path, name)).st_size
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
    """Copy a folder: files with their times, links as links to the same target."""
    os.makedirs(target)
    for name in sorted(os.listdir(source)):
        path, copy_path = os.path.join(source, name), os.path.join(target, name)
        if name in _PASSED_BY:
            continue
        if os.path.islink(path) or os.path.isdir(path) and _is_linked(path):
            os.symlink(_link_target(path, source), copy_path)
        elif os.path.isdir(path):
            _copy(path, copy_path)
        elif os.path.isfile(path):
            shutil.copy2(path, copy_path)
    shutil.copystat(source, target)


def _link_target(path, folder):
    if not os.path.islink(path):
        return os.path.abspath(path)
    target = os.readlink(path)
    is_inside = os.path.isabs(target) or not os.path.normpath(target).startswith(os.pardir)
    return target if is_inside else os.path.join(os.path.realpath(folder), target)


def _stats(folder):
    """Return {name: (size, modification time in ns)} of all files."""
    stats = {}
    for parent, folders, names in os.walk(folder):
        folders[:] = [child for child in folders if child not in _PASSED_BY]
        for name in names:
            path = os.path.join(parent, name)
            try:
                status = os.lstat(path)
            except OSError:
                continue
            stats[os.path.relpath(path, folder)] = status.st_size, status.st_mtime_ns
    return stats


def _remove_new_folders(original, work):
    for parent, folders, _ in os.walk(work, topdown=False):
        for name in folders:
            path = os.path.join(parent, name)
            is_original = os.path.lexists(os.path.join(original, os.path.relpath(path, work)))
            if not is_original and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)


def _remove_named(parent, folders, files, names):
    """Remove entries of a folder in whose names one of these occurs; os.walk passes by what is removed."""
    for entry in [entry for entry in folders + files if any(name in entry for name in names)]:
        path = os.path.join(parent, entry)
        if entry in folders:
            folders.remove(entry)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.remove(path)


def _digest(path):
    digest = hashlib.sha1()
    try:
        with io.open(path, "rb") as source:
            for block in iter(lambda: source.read(1 << 20), b""):
                digest.update(block)
    except (IOError, OSError):
        return "unreadable"
    return digest.hexdigest()
