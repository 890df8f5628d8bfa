"""What is found of one thing that a run needs: it is there, or it is missing, with advice and an exit code."""

import collections

from unbundle.stop import Stop

Check = collections.namedtuple("Check", "name state detail advice code")


def require(found):
    for check in found:
        if check.state == "missing":
            raise Stop(check.code, "{}: {}".format(check.name, check.detail), check.advice)


def ok(name, detail):
    return Check(name, "ok", detail, "", 0)


def missing(name, code, detail, advice):
    return Check(name, "missing", detail, advice, code)
