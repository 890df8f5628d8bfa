"""What the text of a suite file means, case by case: its tokens, without comments, docstrings and layout.

From tokens alone, so that the host and every Python from 3.5 on read the same.
"""

import ast
import collections
import io
import tokenize

# source: the first argument of @case, above which other decorators may stand.  text: the tokens of the case and of all
# in its module that it uses.
Meaning = collections.namedtuple("Meaning", "source text")

_SKIPPED = (tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER)
_DEEPER = {tokenize.INDENT: 1, tokenize.DEDENT: -1}
_GO_ON = ("else", "elif", "except", "finally")  # of the statement before


def of_cases(text):
    # type: (str) -> dict[str, Meaning]
    """{function name: Meaning} of the @case functions of a suite file."""
    statements = [_Statement(lines) for lines in _statements(text)]
    by_name = collections.defaultdict(list)
    for statement in statements:
        for name in statement.names:
            by_name[name].append(statement)
    unnamed = [statement for statement in statements if not statement.names]
    return {statement.names[0]: Meaning(statement.source, _with_helpers(statement, by_name, unnamed))
            for statement in statements if statement.source is not None}


def of_module(text):
    # type: (str) -> str
    """All that a module means."""
    return "\n".join(_Statement(lines).text for lines in _statements(text))


def _with_helpers(case, by_name, unnamed):
    """The case, what it uses, what that uses, and so on; wherever in the module these stand."""
    used, left = {}, [case] + unnamed
    while left:
        statement = left.pop()
        if id(statement) not in used:
            used[id(statement)] = statement
            left += [other for name in statement.uses for other in by_name[name]]
    return "\n".join([case.text] + sorted(one.text for one in used.values() if one is not case))


def _statements(text):
    """The logical lines of each statement of the module."""
    found, decorated = [], False
    for depth, tokens in _lines(text):
        first = tokens[0][1]
        if depth == 0 and not decorated and first not in _GO_ON:
            found.append([])
        found[-1].append((depth, tokens))
        decorated = depth == 0 and first == "@"
    return found


def _lines(text):
    """(depth, [(kind, string)]) of each logical line that is more than a string: nothing comes of these."""
    depth, tokens = 0, []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind, string = token[:2]
        depth += _DEEPER.get(kind, 0)
        if kind == tokenize.NEWLINE:
            if any(one[0] != tokenize.STRING for one in tokens):
                yield depth, tokens
            tokens = []
        elif kind not in _SKIPPED and kind not in _DEEPER:
            tokens.append((kind, string))


class _Statement(object):
    """A statement of the module.

    text: its tokens.  names: what it defines; none for what may do anything, such as a condition.  uses: the names in
    it that are no attributes.  source: of a case, else None.
    """

    def __init__(self, lines):
        tokens = [token for _, line in lines for token in line]
        self.text = "\n".join("{} {}".format(depth, " ".join(string for _, string in line)) for depth, line in lines)
        self.names = _defined([string for _, string in tokens])
        self.uses = {string for before, (kind, string) in zip([(None, "")] + tokens, tokens)
                     if kind == tokenize.NAME and before[1] != "."}
        self.source = next(filter(None, (_source(line) for depth, line in lines if depth == 0)), None)


def _source(tokens):
    if [string for _, string in tokens[:3]] != ["@", "case", "("] or tokens[3][0] != tokenize.STRING:
        return None
    return ast.literal_eval(tokens[3][1])


def _defined(strings):
    if strings[0] == "@":
        strings = strings[min(strings.index(word) for word in ("def", "class") if word in strings):]
    if strings[0] in ("def", "class"):
        return [strings[1]]
    if strings[0] in ("import", "from"):
        return _imported(strings[strings.index("import") + 1:])
    if "=" in strings and ";" not in strings and strings[0].isidentifier() and strings[1] in ("=", ","):
        return [string for string in strings[:strings.index("=")] if string.isidentifier()]
    return []


def _imported(strings):
    """The names that `import a.b as c, d` or `from m import (a as b, c)` brings, from behind the import on."""
    parts = [part.split() for part in " ".join(strings).strip("() ").split(",")]
    names = [words[-1] if "as" in words else words[0] for words in parts if words]
    return [name for name in names if name.isidentifier()]
