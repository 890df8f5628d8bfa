"""What the project's matrix knows to stay nondeterministic, version by version: known.json, made from it by
`tfdet status --write` (claims with citations and measured evidence), never by hand."""

import json
import pkgutil


class Remaining(object):
    """source: its key in the matrix.  title, says, advice: words for people.  measured: by a run, not by documents."""

    def __init__(self, source, title, says, advice, measured):
        self.source = source
        self.title = title
        self.says = says
        self.advice = advice
        self.measured = measured

    def line(self):
        text = "{}: {}".format(self.title.replace("`", ""), self.says)
        return "{}. Instead: {}".format(text, self.advice.replace("`", "")) if self.advice else text


def remaining(build, covered):
    """The Remaining of a detect.Build, less what patches in force cover (unless it was measured under them)."""
    content = load()
    entries = content["lists"][content["places"][_place(content["places"], build)]]
    return [Remaining(source=entry["source"], says=entry["says"], measured=entry["measured"],
                      **content["sources"][entry["source"]])
            for entry in entries if entry["measured"] or entry["source"] not in covered]


def load():
    """The whole file as it is."""
    content = pkgutil.get_data(__package__, "known.json")
    assert content is not None, "it lies beside this file"
    return json.loads(content.decode("ascii"))


def newest():
    # type: () -> tuple[int, int]
    """The (major, minor) of the newest stock TensorFlow in the matrix."""
    return max(_numbers(place.split(" ")[1]) for place in load()["places"] if place.startswith("stock "))


def _place(places, build):
    """The place in the matrix that is this build, or the nearest before it, or the first."""
    if build.kind == "stock":
        mine = [place for place in places if place.startswith("stock ")]
        wanted = build.version
    else:
        # One NGC month has a TensorFlow 1 and a TensorFlow 2 image: "ngc 20.03 tf1".
        mine = [place for place in places if place.startswith("ngc ") and place.endswith(" tf%d" % build.version[0])]
        wanted = _numbers(build.image) if build.image else (99,)
    earlier = [place for place in mine if _numbers(place.split(" ")[1]) <= wanted]
    return max(earlier, key=lambda place: _numbers(place.split(" ")[1])) if earlier else min(
        mine, key=lambda place: _numbers(place.split(" ")[1]))


def _numbers(text):
    """(20, 3) of '20.03'; what is no number counts as 0."""
    return tuple(int(part) if part.isdigit() else 0 for part in text.split("."))
