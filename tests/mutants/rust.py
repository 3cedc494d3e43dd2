"""Finds the possible changes in a Rust file: every place that one of the operators below applies to, with its
replacement.

A change is written as a choice at run time, `(if mutant(17) { changed } else { original })`, so that one build
has all of them. Code that cannot hold such a choice is left alone: comments, attributes, types, patterns,
constants, macros' arguments, tests."""

import dataclasses
import re

import tree_sitter
import tree_sitter_rust

PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))

# The operators that each operator may be mistaken for, likeliest first.
OPERATORS = {
    "<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"], "==": ["!="], "!=": ["=="],
    "+": ["-"], "-": ["+"], "*": ["+"], "/": ["*"], "%": ["/"], "<<": [">>"], ">>": ["<<"],
    "&": ["|"], "|": ["&"], "^": ["|"], "&&": ["||"], "||": ["&&"],
    "+=": ["-="], "-=": ["+="], "*=": ["+="], "|=": ["&="], "&=": ["|="], "<<=": [">>="], ">>=": ["<<="],
}
METHODS = {
    "min": "max", "max": "min", "is_some": "is_none", "is_none": "is_some", "is_ok": "is_err", "is_err": "is_ok",
    "any": "all", "all": "any", "saturating_add": "wrapping_add", "saturating_sub": "wrapping_sub",
    "saturating_mul": "wrapping_mul", "first": "last", "last": "first", "is_some_and": "is_none_or",
    "is_none_or": "is_some_and", "leading_zeros": "trailing_zeros", "trailing_zeros": "leading_zeros",
}
UNCHECKED = {"checked_add": "wrapping_add", "checked_sub": "wrapping_sub", "checked_mul": "wrapping_mul"}
# Nodes whose expressions are not evaluated at run time, or that an `if` cannot replace.
CLOSED = {
    "attribute_item", "inner_attribute_item", "const_item", "static_item", "const_block", "type_arguments", "token_tree",
    "macro_invocation", "macro_definition", "type_item", "enum_item", "struct_item", "use_declaration", "trait_bounds",
    "where_clause", "line_comment", "block_comment",
}
ALIKE = {"identifier", "field_expression", "integer_literal", "binary_expression", "type_cast_expression"}
COMPARED = {"<", "<=", ">", ">=", "==", "!="}
# Macros of kernels/ whose arguments are plain functions.
PLAIN_MACROS = {"inlined_on_devices", "host_only"}


@dataclasses.dataclass(frozen=True)
class Change:
    """A change in one file: the bytes that it replaces, and its description."""
    start: int
    end: int
    line: int
    kind: str
    # The new code, with `{}` for the condition of the change.
    written: str
    shown: str


def changes(source):
    """All changes of a file, in the order of their lines."""
    found = []
    visit(PARSER.parse(source).root_node, source, found)
    return sorted(found, key=lambda change: (change.start, change.end, change.shown))


def text(node, source):
    return source[node.start_byte:node.end_byte].decode()


def braced(code):
    """Escapes code for a pattern of `str.format`."""
    return code.replace("{", "{{").replace("}", "}}")


def opened(node, source):
    """Parses the argument of a macro of `PLAIN_MACROS` as code, with every byte in its place."""
    tree = next(child for child in node.children if child.type == "token_tree")
    start, end = tree.start_byte + 1, tree.end_byte - 1
    return PARSER.parse(re.sub(rb"[^\n]", b" ", source[:start]) + source[start:end]).root_node


def visit(node, source, found):
    if node.type == "macro_invocation" and text(node.child_by_field_name("macro"), source) in PLAIN_MACROS:
        return visit(opened(node, source), source, found)
    if node.type in CLOSED or node.type.endswith(("_type", "_pattern")) and node.type != "match_pattern":
        return
    if node.type in ("function_item", "mod_item"):
        before = node.prev_named_sibling
        while before is not None and before.type in ("attribute_item", "line_comment"):
            if re.match(r"#\[(cfg\(test\)|test\b|cfg\(doctest\))", text(before, source)):
                return
            before = before.prev_named_sibling
        if any(child.type == "function_modifiers" and "const" in text(child, source) for child in node.children):
            return
    add(node, source, found)
    for index, child in enumerate(node.children):
        field = node.field_name_for_child(index)
        of_pattern = node.type == "match_pattern" and field != "condition"
        of_type = field in ("type", "pattern", "return_type", "name", "trait", "macro")
        length = node.type == "array_expression" and field == "length"
        if not of_pattern and not of_type and not length:
            visit(child, source, found)


def add(node, source, found):
    def change(kind, changed, shown, whole=None, statement=False):
        whole = whole or node
        original = text(whole, source)
        if statement:
            written = f"if {{}} {{{{ {braced(changed)} }}}} else {{{{ {braced(original)} }}}}"
        else:
            written = f"(if {{}} {{{{ {braced(changed)} }}}} else {{{{ {braced(original)} }}}})"
        found.append(Change(whole.start_byte, whole.end_byte, whole.start_point[0] + 1, kind, written, shown))

    of = {name: node.child_by_field_name(name) for name in (
        "left", "operator", "right", "condition", "function", "arguments", "value", "consequence", "alternative")}
    said = {name: text(held, source) for name, held in of.items() if held is not None}

    def brief(code):
        return re.sub(r"\s+", " ", code)[:90]

    if node.type in ("binary_expression", "compound_assignment_expr"):
        operator = said["operator"]
        for other in OPERATORS.get(operator, [])[:2]:
            kind = "comparison" if operator in COMPARED else "logic" if operator in ("&&", "||") else "arithmetic"
            written = f"{said['left']} {other} {said['right']}"
            change(kind, written, f"`{brief(text(node, source))}`: `{operator}` to `{other}`")
    elif node.type == "unary_expression" and node.children[0].type == "!":
        change("negation", text(node.children[1], source), f"`{brief(text(node, source))}`: without `!`")
    elif node.type in ("if_expression", "while_expression", "match_pattern") and of["condition"] is not None:
        condition = of["condition"]
        lets = condition.type in ("let_condition", "let_chain")
        if not lets and node.type != "while_expression":
            change("negation", f"!({said['condition']})", f"`if {brief(said['condition'])}`: negated", condition)
        body = text(of["consequence"], source) if of["consequence"] is not None else ""
        if of["alternative"] is None and node.type == "if_expression":
            kind = "early return" if "return" in body else "branch"
            shown = f"`if {brief(said['condition'])}`: its {'return' if kind == 'early return' else 'block'} left out"
            held = said["condition"] if lets else f"({said['condition']})"
            found.append(Change(condition.start_byte, condition.end_byte, condition.start_point[0] + 1, kind,
                                f"!{{}} && {braced(held)}", shown))
    elif node.type == "expression_statement" and node.children[0].type == "try_expression":
        inner = text(node.children[0].children[0], source)
        change("check", f"let _ = {inner};", f"`{brief(text(node, source))}`: without `?`", statement=True)
        change("call", "", f"`{brief(text(node, source))}`: left out", statement=True)
    elif node.type == "expression_statement" and node.children[0].type in ("call_expression", "assignment_expression"):
        change("call", "", f"`{brief(text(node, source))}`: left out", statement=True)
    elif node.type == "boolean_literal":
        other = "false" if text(node, source) == "true" else "true"
        change("constant", other, f"`{text(node, source)}` to `{other}` in `{brief(text(node.parent, source))}`")
    elif node.type == "integer_literal" and node.parent.type not in ("field_expression", "field_initializer_name"):
        written = text(node, source)
        change("constant", f"{written} + 1", f"`{written}` to `{written} + 1` in `{brief(text(node.parent, source))}`")
    elif node.type == "identifier" and re.fullmatch(r"[A-Z][A-Z0-9_]+", text(node, source)):
        if node.parent.type != "scoped_identifier":
            written = text(node, source)
            change("constant", f"{written} + 1", f"`{written}` to `{written} + 1` in `{brief(text(node.parent, source))}`")
    elif node.type == "range_expression" and len(node.children) == 3 and node.children[2].is_named:
        start, sign, end = (text(child, source) for child in node.children)
        change("off by one", f"{start}{sign}({end}) - 1", f"`{brief(text(node, source))}`: ends one earlier")
        change("off by one", f"({start}) + 1{sign}{end}", f"`{brief(text(node, source))}`: starts one later")
    elif node.type == "call_expression":
        calls(node, source, of, change, brief)


def calls(node, source, of, change, brief):
    function, whole = of["function"], text(node, source)
    arguments = [child for child in of["arguments"].named_children if child.type != "line_comment"]
    given = [text(argument, source) for argument in arguments]
    for first in range(len(given) - 1):
        swapped = given[:first] + [given[first + 1], given[first]] + given[first + 2:]
        # Only arguments that seem to have the same type: most other swaps would not compile.
        if given[first] != given[first + 1] and arguments[first].type == arguments[first + 1].type in ALIKE:
            change("arguments", f"{text(function, source)}({', '.join(swapped)})",
                   f"`{brief(whole)}`: `{brief(given[first])}` and `{brief(given[first + 1])}` swapped")
    if text(function, source) == "Some" and node.parent.type != "let_condition":
        change("value", "None", f"`{brief(whole)}` to `None`")
    if function.type != "field_expression":
        return
    receiver = text(function.child_by_field_name("value"), source)
    method = text(function.child_by_field_name("field"), source)
    if method in METHODS:
        change("method", f"{receiver}.{METHODS[method]}({', '.join(given)})",
               f"`{brief(whole)}`: `{method}` to `{METHODS[method]}`")
    elif method in UNCHECKED:
        change("check", f"Some(({receiver}).{UNCHECKED[method]}({', '.join(given)}))", f"`{brief(whole)}`: not checked")
    elif method == "div_ceil":
        change("arithmetic", f"{receiver} / ({given[0]})", f"`{brief(whole)}`: rounded down")
    elif method == "next_multiple_of":
        change("arithmetic", receiver, f"`{brief(whole)}`: not rounded")
