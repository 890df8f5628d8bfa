"""The folder that builds are kept in."""

import os
import time

from virtual_device import builder


def test_what_a_killed_build_left_goes_after_a_day(tmp_path):
    objects = tmp_path / "objects"
    left = [tmp_path / "0123.77.part", objects / "float-0123.77"]
    running = [tmp_path / "0123.78.part", objects / "float-0123.78"]
    made = [tmp_path / "0123", objects / "float-0123.o"]
    for folder in (objects, left[0], running[0], made[0]):
        folder.mkdir()
    for path in (left[1], running[1], made[1]):
        path.touch()
    for path in (*left, *made):
        os.utime(path, (time.time() - 90_000,) * 2)
    builder.sweep(tmp_path)
    assert sorted(tmp_path.rglob("*")) == sorted([objects, *running, *made])
