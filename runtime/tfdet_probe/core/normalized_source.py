"""The normalized source of suite files: their tokens, without comments, docstrings and layout.

The hash of a case is over this text, so a comment makes no record stale.  Only tokens are used, not the syntax tree, so
that the host and every Python from 3.5 on compute the same.
"""

import ast
import collections
import io
import tokenize

# source: the first argument of @case, above which other decorators may be.  text: the tokens of the case and of all
# definitions of its module that it uses.
NormalizedCase = collections.namedtuple("NormalizedCase", "source text")

_IGNORED_TOKENS = (tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER)
_DEPTH_CHANGE = {tokenize.INDENT: 1, tokenize.DEDENT: -1}
_CONTINUATION_KEYWORDS = ("else", "elif", "except", "finally")  # continue the statement before


def normalize_cases(text):
    # type: (str) -> dict[str, NormalizedCase]
    """Normalize the @case functions of a suite file; {function name: NormalizedCase}."""
    statements = [_Statement(lines) for lines in _statements(text)]
    by_name = collections.defaultdict(list)
    for statement in statements:
        for name in statement.names:
            by_name[name].append(statement)
    unnamed = [statement for statement in statements if not statement.names]
    return {statement.names[0]: NormalizedCase(statement.source, _with_helpers(statement, by_name, unnamed))
            for statement in statements if statement.source is not None}


def normalize_module(text):
    # type: (str) -> str
    """Normalize a whole module: its tokens, a line for each logical line."""
    return "\n".join(_Statement(lines).text for lines in _statements(text))


def _with_helpers(case, by_name, unnamed):
    """Return the tokens of a case and, transitively, of the statements of its module that it uses."""
    used, pending = {}, [case] + unnamed
    while pending:
        statement = pending.pop()
        if id(statement) not in used:
            used[id(statement)] = statement
            pending += [other for name in statement.uses for other in by_name[name]]
    return "\n".join([case.text] + sorted(statement.text for statement in used.values() if statement is not case))


def _statements(text):
    """The logical lines of each statement of the module."""
    statements, decorated = [], False
    for depth, tokens in _lines(text):
        first = tokens[0][1]
        if depth == 0 and not decorated and first not in _CONTINUATION_KEYWORDS:
            statements.append([])
        statements[-1].append((depth, tokens))
        decorated = depth == 0 and first == "@"
    return statements


def _lines(text):
    """Yields (depth, [(kind, string)]) of each logical line; a line that is only a string is a docstring, left out."""
    depth, tokens = 0, []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind, string = token[:2]
        depth += _DEPTH_CHANGE.get(kind, 0)
        if kind == tokenize.NEWLINE:
            if any(token[0] != tokenize.STRING for token in tokens):
                yield depth, tokens
            tokens = []
        elif kind not in _IGNORED_TOKENS and kind not in _DEPTH_CHANGE:
            tokens.append((kind, string))


class _Statement(object):
    """A statement of the module.

    Attributes:
        text: its tokens.
        names: what it defines; empty for a statement that may do anything, such as `if`.
        uses: the names in it that are not attributes.
        source: the argument of @case, or None.
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
    """The names that an import statement binds; strings: its tokens after the word `import`."""
    parts = [part.split() for part in " ".join(strings).strip("() ").split(",")]
    names = [words[-1] if "as" in words else words[0] for words in parts if words]
    return [name for name in names if name.isidentifier()]
