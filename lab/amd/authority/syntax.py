"""Parses AMD's pseudo-code into trees of tuples, whose first element is the node's kind. Unknown syntax is
an error: the parser skips nothing but comments."""

import functools
import re

import floats
from values import Value

TOKEN = re.compile(
    r"\s*(?:"
    r"(?P<typed>\d+'(?:0x[0-9a-fA-F]+|\d+)U?|\d+'[UIBF]\b)"
    r"|(?P<number>0x[0-9a-fA-F]+(?:ULL|LL|U)?|\d+\.\d+F?|\d+(?:ULL|LL|U)?)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>\*\*|<<|>>|<=|>=|==|!=|<>|&&|\|\||\+=|-=|[-+*/%&|^~!<>=?:;,.(){}\[\]])"
    r")"
)
TYPE = re.compile(r"([uibf])(\d+)$")


def tokens(text):
    text = re.sub(r"//[^\n]*", "", text)
    found, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            raise SyntaxError(f"{text[at:at + 40]!r}")
        found.append((match.lastgroup, match.group(match.lastgroup)))
        at = match.end()
    return found


LEVELS = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!=", "<>"], ["<", "<=", ">", ">="], ["<<", ">>"], ["+", "-"],
          ["*", "/", "%"], ["**"]]


class Parser:
    def __init__(self, text):
        self.tokens, self.at = tokens(text), 0

    def peek(self):
        return self.tokens[self.at][1] if self.at < len(self.tokens) else None

    def take(self, wanted=None):
        if self.at >= len(self.tokens) or (wanted is not None and self.peek() != wanted):
            raise SyntaxError(f"{wanted} expected, {self.peek()} found")
        self.at += 1
        return self.tokens[self.at - 1][1]

    def accept(self, wanted):
        if self.peek() == wanted:
            self.at += 1
            return True
        return False

    def block(self, ends):
        made = []
        while self.peek() not in ends:
            if self.accept(";"):
                continue
            made.append(self.statement())
        return made

    def statement(self):
        word = self.peek()
        if word == "if":
            arms, otherwise = [], []
            self.take()
            while True:
                condition = self.expression()
                self.take("then")
                arms.append((condition, self.block(("elsif", "else", "endif"))))
                if not self.accept("elsif"):
                    break
            if self.accept("else"):
                otherwise = self.block(("endif",))
            self.take("endif")
            return ("if", arms, otherwise)
        if word == "for":
            self.take()
            name = self.take()
            self.take("in")
            first = self.expression()
            self.take(":")
            last = self.expression()
            self.take("do")
            body = self.block(("endfor",))
            self.take("endfor")
            return ("for", name, first, last, body)
        if word == "declare":
            self.take()
            name = self.take()
            self.take(":")
            width = int(self.take().split("'")[0])
            is_array = self.accept("[")
            while self.peek() not in (";", None):
                self.take()
            return ("declare", name, width, is_array)
        if word == "break":
            self.take()
            return ("break",)
        if word == "return":
            self.take()
            return ("return", self.expression())
        target = self.expression()
        if target[0] == "call":
            return ("do", target)
        sign = self.take()
        if sign not in ("=", "+=", "-="):
            raise SyntaxError(f"a statement with {sign}")
        if self.peek() == "lambda":
            self.take()
            self.take("(")
            names = [self.take()]
            while self.accept(","):
                names.append(self.take())
            self.take(")")
            self.take("(")
            body = self.block((")",))
            self.take(")")
            return ("lambda", target[1], names, body)
        value = self.expression()
        return ("set", target, value if sign == "=" else ("binary", sign[0], target, value))

    def expression(self):
        condition = self.level(0)
        if not self.accept("?"):
            return condition
        yes = self.expression()
        self.take(":")
        return ("choose", condition, yes, self.expression())

    def level(self, depth):
        if depth == len(LEVELS):
            return self.unary()
        left = self.level(depth + 1)
        while self.peek() in LEVELS[depth]:
            sign = self.take()
            left = ("binary", sign, left, self.level(depth + 1))
        return left

    def unary(self):
        if self.accept("+"):
            return self.unary()
        if self.peek() in ("-", "~", "!"):
            return ("unary", self.take(), self.unary())
        return self.postfix(self.primary())

    def primary(self):
        kind, text = self.tokens[self.at]
        self.at += 1
        if text == "(":
            inner = self.expression()
            self.take(")")
            return inner
        if text == "{":
            parts = [self.expression()]
            while self.accept(","):
                parts.append(self.expression())
            self.take("}")
            return ("join", parts)
        if kind == "typed":
            width, rest = text.split("'")
            if rest in "UIBF":
                self.take("(")
                inner = self.expression()
                self.take(")")
                return ("cast", rest.lower(), int(width), inner)
            return ("constant", Value("u" if rest.endswith("U") else "i", int(width), int(rest.rstrip("U"), 0)))
        if kind == "number":
            if "." in text:
                width = 32 if text.endswith("F") else 64
                whole, part = text.rstrip("F").split(".")
                number = floats.Fraction(int(whole + part), 10 ** len(part))
                return ("constant", Value("f", width, floats.nearest(number, width)))
            stem = text.rstrip("UL")
            ending = text[len(stem):]
            return ("constant", Value("u" if "U" in ending else "i", 64 if "LL" in ending else 32, int(stem, 0)))
        if kind == "name":
            if self.accept("("):
                arguments = []
                while not self.accept(")"):
                    arguments.append(self.expression())
                    self.accept(",")
                return ("call", text, arguments)
            return ("name", text)
        raise SyntaxError(f"{text} where a value is expected")

    def postfix(self, made):
        while True:
            if self.accept("."):
                match = TYPE.match(self.take())
                made = ("type", match[1], int(match[2]), made)
            elif self.accept("["):
                high = self.expression()
                low = self.expression() if self.accept(":") else None
                self.take("]")
                made = ("slice", made, high, low)
            else:
                return made


@functools.cache
def parsed(text):
    parser = Parser(text)
    made = parser.block((None,))
    return made
