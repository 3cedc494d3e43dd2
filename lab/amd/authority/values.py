"""The values of AMD's pseudo-code: a value is a number with a kind and a width; a store of bits is read
and written in parts, as registers are."""

import floats

# The numbers that an operand of these places stands for, from 240 on; and 1 / (2 pi), by the width of its
# bits.
FRACTIONS = [0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0]
INVERSE_OF_2_PI = {16: 0x3118, 32: 0x3E22F983, 64: 0x3FC45F306DC9C882}


class Value:
    """Kinds: `u`nsigned, `i` signed, `b`its, `f`loating (its bits), and `p`, a power of two that was not rounded."""

    __slots__ = ("kind", "width", "number")

    def __init__(self, kind, width, number):
        if kind == "i":
            number &= (1 << width) - 1
            number -= (number >> (width - 1)) << width
        elif kind != "p":
            number &= (1 << width) - 1
        self.kind, self.width, self.number = kind, width, number

    def bits(self):
        return self.number & (1 << self.width) - 1

    def as_type(self, kind, width):
        return Value(kind, width, self.bits())

    def cast(self, kind, width):
        """Converts the number, as far as it fits; `as_type` keeps the bits instead."""
        if kind == "f":
            return Value("f", width, floats.convert(self.number, self.width, width))
        return Value(kind, width, self.number)

    def truth(self):
        return self.bits() != 0


class Bits:
    """A register or a variable: bits that are read and written in parts."""

    __slots__ = ("number", "width", "kind")

    def __init__(self, number=0, width=None, kind=None):
        self.number, self.width, self.kind = number, width, kind

    def whole(self):
        return Value(self.kind or "b", self.width or 512, self.number)

    def put(self, low, width, value):
        mask = (1 << width) - 1
        self.number = self.number & ~(mask << low) | (value & mask) << low
        if self.width:
            self.number &= (1 << self.width) - 1


class Unsupported(Exception):
    """An instruction that the check does not cover: reported, never skipped silently."""
