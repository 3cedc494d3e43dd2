"""Evaluates AMD's pseudo-code, the text of the ISA documents that defines each instruction. Each text is
parsed once and evaluated for each lane."""

import floats
from syntax import parsed
from values import Bits, Value


class Leave(Exception):
    pass


class Return(Exception):
    pass


def binary(sign, a, b):
    if sign in ("&&", "||"):
        return Value("u", 1, a.truth() and b.truth() if sign == "&&" else a.truth() or b.truth())
    if sign == "**":
        if a.kind != "f" or floats.value(a.number, a.width) != 2:
            raise TypeError("a power that is not of two")
        return Value("p", a.width, b.number)
    if sign in ("<<", ">>"):
        number = a.number << b.number if sign == "<<" else a.number >> b.number
        return Value(a.kind, a.width, number)
    if "f" in (a.kind, b.kind):
        return float_binary(sign, a, b)
    width = max(a.width, b.width)
    kind = "i" if a.kind == b.kind == "i" else "u"
    if sign in ("==", "!=", "<>", "<", "<=", ">", ">="):
        # As in C, a constant without an explicit sign takes the other operand's kind.
        if kind == "u":
            a, b = Value("u", width, a.number), Value("u", width, b.number)
        return Value("u", 1, COMPARE[sign]((a.number > b.number) - (a.number < b.number)))
    number = {"+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "/": divide,
              "%": lambda x, y: x - y * divide(x, y), "&": lambda x, y: x & y, "|": lambda x, y: x | y,
              "^": lambda x, y: x ^ y}[sign](a.number, b.number)
    return Value(kind, width, number)


def divide(a, b):
    """Divides towards zero, as C does."""
    return abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


COMPARE = {"==": lambda c: c == 0, "!=": lambda c: c != 0, "<>": lambda c: c != 0, "<": lambda c: c < 0,
           "<=": lambda c: c <= 0, ">": lambda c: c > 0, ">=": lambda c: c >= 0}


def float_binary(sign, a, b):
    width = a.width
    if b.kind == "p" and sign == "*":
        return Value("f", width, floats.scale(a.number, b.number, width))
    if a.kind != "f" or b.kind != "f" or b.width != width:
        raise TypeError(f"{a.kind}{a.width} {sign} {b.kind}{b.width}")
    if sign in COMPARE:
        order = floats.compare(a.number, b.number, width)
        # Only `!=` is true for a NaN; `<>` means "less or greater".
        return Value("u", 1, sign == "!=" if order is None else COMPARE[sign](order))
    if sign == "-":
        return Value("f", width, floats.add(a.number, b.number ^ 1 << (width - 1), width))
    run = {"+": floats.add, "*": floats.multiply, "/": floats.divide}[sign]
    return Value("f", width, run(a.number, b.number, width))


def lowest_one(value):
    bits = value.bits()
    return Value("i", 32, (bits & -bits).bit_length() - 1 if bits else -1)


def from_float(kind, width):
    bounds = (0, (1 << width) - 1) if kind == "u" else (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    return lambda a: Value(kind, width, floats.to_integer(a.number, a.width, *bounds))


def to_float(width):
    return lambda a: Value("f", width, floats.nearest(floats.Fraction(a.number), width))


def extend_from_bit(value, bit):
    width = bit.number
    if width == 0 or width >= value.width:
        return value if width else Value("i", value.width, 0)
    return Value("i", value.width, Value("i", width, value.bits()).number)


def extreme(order):
    def run(a, b):
        return a if order(a.number, b.number) else b
    return run


FUNCTIONS = {
    "signext": lambda a: Value("i", 64, a.number),
    "signext_from_bit": extend_from_bit,
    "s_ff1_i32_b32": lowest_one,
    "s_ff1_i32_b64": lowest_one,
    "trunc": lambda a: Value("f", a.width, floats.truncate(a.number, a.width)),
    "fma": lambda a, b, c: Value("f", a.width, floats.fma(a.number, b.number, c.number, a.width)),
    "isNAN": lambda a: Value("u", 1, floats.is_nan(a.number, a.width)),
    "isDENORM": lambda a: Value("u", 1, floats.is_denormal(a.number, a.width)),
    "exponent": lambda a: Value("i", 32, floats.exponent(a.number, a.width)),
    "sign": lambda a: Value("u", 1, floats.sign_of(a.number, a.width)),
    "abs": lambda a: Value("f", a.width, a.number & ~(1 << (a.width - 1))),
    "ldexp": lambda a, by: Value("f", a.width, floats.scale(a.number, by.number, a.width)),
    "cvtToQuietNAN": lambda a: a,
    "scaled_fma": lambda a, b, c: Value("f", a.width, floats.scaled_fma(a.number, b.number, c.number, a.width)),
    "flush": lambda a: Value("f", a.width, floats.flush(a.number, a.width)),
    "f64_to_f32": lambda a: Value("f", 32, floats.convert(a.number, 64, 32)),
    "f32_to_f64": lambda a: Value("f", 64, floats.convert(a.number, 32, 64)),
    "nop": lambda: None,
}
for _width in (32, 64):
    for _kind in "iu":
        FUNCTIONS[f"{_kind}32_to_f{_width}"] = to_float(_width)
        FUNCTIONS[f"f{_width}_to_{_kind}32"] = from_float(_kind, 32)
for _type in ("u16", "i16", "u32", "i32"):
    FUNCTIONS[f"v_max_{_type}"] = extreme(lambda a, b: a >= b)
    FUNCTIONS[f"v_min_{_type}"] = extreme(lambda a, b: a < b)
    FUNCTIONS[f"v_max3_{_type}"] = lambda a, b, c: FUNCTIONS["v_max_i32"](FUNCTIONS["v_max_i32"](a, b), c)


# Named constants, in the width that the text requests.
NAMED = {"NAN": floats.nan, "INF": lambda width: floats.infinity(0, width)}
for _width in (32, 64):
    NAMED[f"OVERFLOW_F{_width}"] = lambda _, width=_width: floats.infinity(0, width)
    NAMED[f"UNDERFLOW_F{_width}"] = lambda _: 0


class Program:
    """Runs pseudo-code with given names. `memory` has `read(address, bytes)` and `write(address, bytes,
    value)`; arrays such as `VGPR` are Python functions that map their indices to `Bits`."""

    def __init__(self, names, memory=None, arrays=None):
        self.names, self.memory, self.arrays, self.functions = names, memory, arrays or {}, dict(FUNCTIONS)

    def run(self, text):
        self.block(parsed(text))

    def block(self, statements):
        for statement in statements:
            getattr(self, "do_" + statement[0])(*statement[1:])

    def do_if(self, arms, otherwise):
        for condition, body in arms:
            if self.value(condition).truth():
                return self.block(body)
        return self.block(otherwise)

    def do_for(self, name, first, last, body):
        try:
            for i in range(self.value(first).number, self.value(last).number + 1):
                self.names[name] = Bits(i, 32, "i")
                self.block(body)
        except Leave:
            pass

    def do_declare(self, name, width, is_array):
        if is_array:
            elements = {}
            self.arrays[name] = lambda i, _elements=elements: _elements.setdefault(i, Bits(0, width))
        elif name not in self.names:
            self.names[name] = Bits()

    def do_break(self):
        raise Leave

    def do_return(self, value):
        raise Return(self.value(value))

    def do_do(self, call):
        self.value(call)

    def do_lambda(self, name, names, body):
        def run(*arguments):
            inner = Program({k: Bits(v.bits(), v.width) for k, v in zip(names, arguments)})
            try:
                inner.block(body)
            except Return as made:
                return made.args[0]
            raise TypeError("a function without a result")
        self.functions[name] = run

    def do_set(self, target, value):
        self.assign(target, self.value(value))

    def assign(self, target, value):
        if target[0] == "join":
            low = 0
            for part in reversed(target[1]):
                kind, width, inner = part[1:]
                self.assign(part, Value("b", width, value.bits() >> low))
                low += width
            return
        if target[0] == "type" and self.is_memory(target[3]):
            address = self.value(target[3][2]).bits()
            return self.memory.write(address, target[2] // 8, value.bits() & (1 << target[2]) - 1)
        if target[0] == "name":
            known = self.names.get(target[1])
            if known is None or known.width is None:
                # A variable has the type of its last assignment.
                self.names[target[1]] = Bits(value.bits(), value.width, value.kind)
                known = self.names[target[1]]
                known.width = None if value.kind == "b" else value.width
            else:
                known.put(0, known.width, value.bits())
            return
        store, low, width = self.place(target)
        number = value.number if width > value.width else value.bits()
        store.put(low, width, number)
        if target[0] == "type" and target[3][0] == "name" and store.width is None:
            store.kind = target[1]

    def place(self, target):
        """The location of a target: its store, its lowest bit and its width."""
        if target[0] == "name":
            store = self.names.setdefault(target[1], Bits())
            return store, 0, store.width or 512
        if target[0] == "type":
            store, low, _ = self.place(target[3])
            return store, low, target[2]
        if target[0] != "slice":
            raise TypeError(f"{target[0]} as a place")
        element = self.element(target)
        if element is not None:
            return element, 0, element.width
        store, base, _ = self.place(target[1])
        high = self.value(target[2]).bits()
        low = high if target[3] is None else self.value(target[3]).bits()
        return store, base + low, high - low + 1

    def is_memory(self, node):
        return node[0] == "slice" and node[1] == ("name", "MEM")

    def element(self, node):
        """An element of an array, as in `VGPR[lane][register]`."""
        if node[3] is not None:
            return None
        indices = []
        while node[0] == "slice":
            indices.insert(0, node[2])
            node = node[1]
        if node[0] != "name" or node[1] not in self.arrays:
            return None
        array = self.arrays[node[1]]
        if len(indices) != array.__code__.co_argcount - len(array.__defaults__ or ()):
            return None
        return array(*[self.value(index).number for index in indices])

    def value(self, node):
        return getattr(self, "of_" + node[0])(*node[1:])

    def of_constant(self, value):
        return value

    def of_name(self, name):
        if name in NAMED and name not in self.names:
            width = 32 if name.endswith("32") else 64
            return Value("f", width, NAMED[name](width))
        if name not in self.names:
            raise NameError(name)
        return self.names[name].whole()

    def of_type(self, kind, width, inner):
        if self.is_memory(inner):
            return Value(kind, width, self.memory.read(self.value(inner[2]).bits(), width // 8))
        if inner[0] == "name" and inner[1] in NAMED:
            return Value(kind, width, NAMED[inner[1]](width))
        return self.value(inner).as_type(kind, width)

    def of_slice(self, inner, high, low):
        element = self.element(("slice", inner, high, low))
        if element is not None:
            return element.whole()
        bits, high = self.value(inner).bits(), self.value(high).bits()
        low = high if low is None else self.value(low).bits()
        if high < low:
            number = sum((bits >> (high + i) & 1) << (low - high - i) for i in range(low - high + 1))
            return Value("u", low - high + 1, number)
        return Value("u", high - low + 1, bits >> low)

    def of_cast(self, kind, width, inner):
        return self.value(inner).cast(kind, width)

    def of_join(self, parts):
        number = width = 0
        for part in parts:
            value = self.value(part)
            number, width = number << value.width | value.bits(), width + value.width
        return Value("u", width, number)

    def of_choose(self, condition, yes, no):
        return self.value(yes if self.value(condition).truth() else no)

    def of_unary(self, sign, inner):
        value = self.value(inner)
        if sign == "!":
            return Value("u", 1, not value.truth())
        if value.kind == "f":
            return Value("f", value.width, value.number ^ 1 << (value.width - 1))
        return Value(value.kind, value.width, -value.number if sign == "-" else ~value.number)

    def of_binary(self, sign, left, right):
        return binary(sign, self.value(left), self.value(right))

    def of_call(self, name, arguments):
        if name not in self.functions:
            raise NameError(name)
        return self.functions[name](*[self.value(argument) for argument in arguments])
