"""The result of checking one requirement of a run: ok, warn or missing, with advice and an exit code."""

import collections

from unbundle.errors import BundleError

# state: "ok", "warn" or "missing"; code: the exit code if the requirement is missing, else 0; the others: text.
Check = collections.namedtuple("Check", "name state detail advice code")


def require(checks):
    """Raise a BundleError for the first requirement that is missing."""
    for check in checks:
        if check.state == "missing":
            raise BundleError(check.code, "{}: {}".format(check.name, check.detail), check.advice)


def ok(name, detail):
    return Check(name, "ok", detail, "", 0)


def missing(name, code, detail, advice):
    return Check(name, "missing", detail, advice, code)
