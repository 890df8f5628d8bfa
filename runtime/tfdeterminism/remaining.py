"""The ops that remain nondeterministic in each version of TensorFlow, read from known.json.

`tfdet status --write` generates known.json from the project's matrix: cited claims and measured evidence.
"""

import json
import pkgutil


class Remaining(object):
    """A source that remains nondeterministic or raises an error.

    Attributes:
        source: its key in the matrix.
        title, says, advice: what it is, what happens, and what to do instead, as text.
        measured: whether a run showed it; otherwise documents claim it.
    """

    def __init__(self, source, title, says, advice, measured):
        self.source = source
        self.title = title
        self.says = says
        self.advice = advice
        self.measured = measured

    def line(self):
        """Return the source as one line of the report."""
        text = "{}: {}".format(self.title.replace("`", ""), self.says)
        return "{}. Instead: {}".format(text, self.advice.replace("`", "")) if self.advice else text


def remaining_of(build, patched_sources):
    """Return what remains in a build.

    Args:
        build: a detect.Build.
        patched_sources: left out, unless they were measured under the patches.

    Returns:
        A list of Remaining.
    """
    content = load()
    entries = content["lists"][content["places"][_nearest_build(content["places"], build)]]
    return [Remaining(source=entry["source"], says=entry["says"], measured=entry["measured"],
                      **content["sources"][entry["source"]])
            for entry in entries if entry["measured"] or entry["source"] not in patched_sources]


def load():
    """Return known.json: "places" {build: key of its list}, "lists" {key: entries}, "sources" {key: its texts}."""
    content = pkgutil.get_data(__package__, "known.json")
    assert content is not None, "it lies beside this file"
    return json.loads(content.decode("ascii"))


def newest():
    # type: () -> tuple[int, int]
    """Return the (major, minor) of the newest stock TensorFlow in the matrix."""
    return max(_numbers(place.split(" ")[1]) for place in load()["places"] if place.startswith("stock "))


def _nearest_build(places, build):
    """Return the key of a build in known.json: this build, else the nearest older one, else the oldest."""
    if build.kind == "stock":
        candidates = [place for place in places if place.startswith("stock ")]
        version = build.version
    else:
        # One NGC month has a TensorFlow 1 and a TensorFlow 2 image: "ngc 20.03 tf1".
        suffix = " tf%d" % build.version[0]
        candidates = [place for place in places if place.startswith("ngc ") and place.endswith(suffix)]
        version = _numbers(build.image) if build.image else (99,)
    earlier = [place for place in candidates if _numbers(place.split(" ")[1]) <= version]
    return max(earlier, key=lambda place: _numbers(place.split(" ")[1])) if earlier else min(
        candidates, key=lambda place: _numbers(place.split(" ")[1]))


def _numbers(text):
    """Return a version as ints: (20, 3) for '20.03'; a part that is not a number is 0."""
    return tuple(int(part) if part.isdigit() else 0 for part in text.split("."))
