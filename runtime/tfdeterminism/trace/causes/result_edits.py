"""Edits of lines that use what a call returned: the sets of wait(), a measurement of the system in a variable."""

import ast


def ordered_waits(code):
    """Return [edits of one change], which order the sets of wait() as the tasks that it was called with.

    code: a source_fixes._Code whose line calls wait(), or iterates over a set that wait() returned.
    """
    names = {name.id for node in code.nodes for name in ast.walk(node) if isinstance(name, ast.Name)}
    changes = []
    for statement in (node for node in ast.walk(code.tree) if isinstance(node, ast.Assign)):
        call = _wait_of(statement)
        targets = _set_names(statement) if call is not None else []
        is_here = statement is code.statement or bool(names & set(targets))
        if not targets or not is_here or not call.args or "\n" in code.text(statement):
            continue
        tasks = call.args[0]
        if not isinstance(tasks, (ast.Name, ast.Attribute)) or code.text(tasks) in targets:
            continue
        text = "".join("; {0} = [one for one in {1} if one in {0}]".format(name, code.text(tasks)) for name in targets)
        changes.append([code.replace(statement, code.text(statement) + text)])
    return changes


def _wait_of(statement):
    """Return the call of wait() whose result a statement assigns, or None."""
    value = statement.value.value if isinstance(statement.value, ast.Await) else statement.value
    function = getattr(value, "func", None)
    name = getattr(function, "id", getattr(function, "attr", None))
    return value if isinstance(value, ast.Call) and name == "wait" else None


def _set_names(statement):
    """Return the names that a statement binds to the two sets of wait()."""
    target = statement.targets[0]
    elements = target.elts if isinstance(target, ast.Tuple) else []
    return [element.id for element in elements if isinstance(element, ast.Name) and element.id.strip("_")]


def fields_used(code, calls):
    """Return the names of the fields that the file uses of the variables to which the line assigns one of these calls.

    The result is empty if a variable is used otherwise, such as by an index.
    """
    statement = code.statement
    if not isinstance(statement, ast.Assign) or statement.value not in calls:
        return []
    names = {target.id for target in statement.targets if isinstance(target, ast.Name)}
    fields = [node for node in ast.walk(code.tree) if isinstance(node, ast.Attribute)]
    fields = [node for node in fields if getattr(node.value, "id", None) in names]
    uses = [node for node in ast.walk(code.tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    is_used_otherwise = len([node for node in uses if node.id in names]) > len(fields)
    return [] if is_used_otherwise else sorted({node.attr for node in fields})
