"""How much a run did: its results by number. A fix with which the program does less, or fails inside, mends nothing."""

import re

_FORM = re.compile(r"[-+]?\w*\d\w*")  # numbers, and names that hold one: other values do not make another line
_COMPLAINT = re.compile(r"\w*(?:error|exception|traceback|fail|could not|couldn't|cannot|can't|unable|killed)\w*", re.I)
_WARNING = re.compile(r"warn", re.I)
_SMALL = 256  # bytes: shorter results may halve because a name is shorter
_ENDING = re.compile(r"\.[A-Za-z]\w{0,9}$")


class Work(object):
    """How much one run did.

    tensors: number of trained tensors; files: number of files that hold something; bytes: in all of them; endings: of
    their names; lines: number of printed lines; forms: {a printed line without its numbers: the first such line};
    complaints: words of printed errors; steps: number of training steps, records: of values that its trace has, None
    where nothing counts them; has_framework: whether a trace can.
    """

    def __init__(self, tensors=0, sizes=(), printed="", errors="", has_framework=False):
        written = {path: size for path, size in dict(sizes).items() if size}
        lines = [line.strip() for line in printed.split("\n") if line.strip()]
        self.has_framework = has_framework
        self.tensors, self.files, self.bytes = tensors, len(written), sum(written.values())
        self.endings = {ending.group() for ending in map(_ENDING.search, written) if ending}
        self.lines = len(lines)
        self.forms = {_FORM.sub("", line): line for line in reversed(lines)}
        self.complaints = set()  # type: set[str]
        for line in lines + [line for line in errors.split("\n") if not _WARNING.search(line)]:
            self.complaints.update(map(str.lower, _COMPLAINT.findall(line)))
        self.steps = self.records = None


def shortfall(work, others):
    """Return in words what a run does less than each of some others, or fails at; None if it does as much.

    others: Work of runs without the change, of which the first began with the same files.
    """
    checks = (_complaints, _tensors, _files, _printed, fewer_steps)
    return next((words for words in (check(work, others) for check in checks) if words), None)


def _complaints(work, others):
    new = work.complaints.difference(*[other.complaints for other in others])
    return 'it prints "{}", as no other run does'.format(min(new)) if new else None


def _tensors(work, others):
    return _fewer("trains {} tensors", work.tensors, [other.tensors for other in others], 1)


def _files(work, others):
    first = others[0]
    if first.endings - work.endings:
        return "it writes no file *{}".format(min(first.endings - work.endings))
    is_small = first.bytes < _SMALL
    return _fewer("writes {} files", work.files, [first.files], 0.5) or (
        None if is_small else _fewer("writes {} bytes", work.bytes, [first.bytes], 0.5)
    )


def _printed(work, others):
    lines = [other.lines for other in others]
    known = set.union(*[set(other.forms) for other in others])
    common = set.intersection(*[set(other.forms) for other in others])
    missing, new = common - set(work.forms), set(work.forms) - known
    if missing and not new:
        return "it prints no line like `{}`".format(others[0].forms[min(missing)])
    if new and known == common and not missing:
        return "it prints `{}`, as no other run does".format(work.forms[min(new)])
    return _fewer("prints {} lines", work.lines, lines, 0.5 if len(set(lines)) > 1 else 0.75)


def fewer_steps(work, others):
    """Return in words how many steps, or values of a trace, a run has less than each of some others, or None."""
    for name, words in (("steps", "makes {} training steps"), ("records", "computes {} values")):
        numbers = [getattr(other, name) for other in others if getattr(other, name) is not None]
        if numbers:
            short = _fewer(words, getattr(work, name) or 0, numbers, 0.5 if len(set(numbers)) > 1 else 1)
            if short:
                return short
    return None


def _fewer(words, number, others, share):
    """Return the words about a number that is less than this share of the least of the others', or None."""
    if number >= share * min(others):
        return None
    return "it {}, without it {}{}".format(
        words.format(number), "at least " if len(set(others)) > 1 else "", min(others)
    )
