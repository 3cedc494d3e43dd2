"""The floating-point arithmetic of AMD's pseudo-code: exact arithmetic on fractions, then one rounding to
the nearest, ties to even. It does not use the host's floating-point unit, which the interpreter uses."""

from fractions import Fraction

# For each width: the stored bits of the significand, and the exponent's bias.
FORMATS = {16: (10, 15), 32: (23, 127), 64: (52, 1023)}


def fields(bits, width):
    stored, _ = FORMATS[width]
    return bits >> (width - 1), bits >> stored & (1 << (width - 1 - stored)) - 1, bits & (1 << stored) - 1


def highest(width):
    return (1 << (width - 1 - FORMATS[width][0])) - 1


def is_nan(bits, width):
    _, exponent, significand = fields(bits, width)
    return exponent == highest(width) and significand != 0


def is_infinite(bits, width):
    _, exponent, significand = fields(bits, width)
    return exponent == highest(width) and significand == 0


def infinity(sign, width):
    return (sign << (width - 1)) | highest(width) << FORMATS[width][0]


def nan(width):
    return infinity(0, width) | 1 << (FORMATS[width][0] - 1)


def value(bits, width):
    """The exact value of a finite number, as a fraction."""
    stored, bias = FORMATS[width]
    sign, exponent, significand = fields(bits, width)
    if exponent:
        significand |= 1 << stored
    scale = max(exponent, 1) - bias - stored
    magnitude = Fraction(significand) * (Fraction(2) ** scale)
    return -magnitude if sign else magnitude


def nearest(number, width, zero_sign=0):
    """The bits of the nearest number of this width; a zero gets the given sign."""
    stored, bias = FORMATS[width]
    if number == 0:
        return zero_sign << (width - 1)
    sign, number = int(number < 0), abs(number)
    exponent = number.numerator.bit_length() - number.denominator.bit_length()
    if Fraction(2) ** exponent > number:
        exponent -= 1
    exponent = max(exponent, 1 - bias)
    scaled = number / Fraction(2) ** (exponent - stored)
    units = scaled.numerator // scaled.denominator
    rest = scaled - units
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and units & 1):
        units += 1
    # A carry out of the significand increments the exponent, as it should; a denormal has exponent 0.
    bits = units + ((exponent + bias - 1) << stored)
    return min(bits, infinity(0, width)) | sign << (width - 1)


def sign_of(bits, width):
    return bits >> (width - 1)


def add(a, b, width):
    if is_nan(a, width) or is_nan(b, width):
        return nan(width)
    if is_infinite(a, width):
        return nan(width) if is_infinite(b, width) and a != b else a
    if is_infinite(b, width):
        return b
    return nearest(value(a, width) + value(b, width), width, sign_of(a, width) & sign_of(b, width))


def multiply(a, b, width):
    sign = sign_of(a, width) ^ sign_of(b, width)
    if is_nan(a, width) or is_nan(b, width):
        return nan(width)
    if is_infinite(a, width) or is_infinite(b, width):
        other = b if is_infinite(a, width) else a
        zero = not is_infinite(other, width) and value(other, width) == 0
        return nan(width) if zero else infinity(sign, width)
    return nearest(value(a, width) * value(b, width), width, sign)


def divide(a, b, width):
    sign = sign_of(a, width) ^ sign_of(b, width)
    if is_nan(a, width) or is_nan(b, width):
        return nan(width)
    if is_infinite(a, width):
        return nan(width) if is_infinite(b, width) else infinity(sign, width)
    if is_infinite(b, width):
        return sign << (width - 1)
    if value(b, width) == 0:
        return nan(width) if value(a, width) == 0 else infinity(sign, width)
    return nearest(value(a, width) / value(b, width), width, sign)


def fma(a, b, c, width):
    sign = sign_of(a, width) ^ sign_of(b, width)
    if any(is_nan(x, width) for x in (a, b, c)):
        return nan(width)
    if is_infinite(a, width) or is_infinite(b, width):
        product = multiply(a, b, width)
        return add(product, c, width) if is_infinite(c, width) or is_nan(product, width) else product
    if is_infinite(c, width):
        return c
    return nearest(value(a, width) * value(b, width) + value(c, width), width, sign & sign_of(c, width))


def exponent(a, width):
    """The exponent field, including its bias."""
    return fields(a, width)[1]


def is_denormal(a, width):
    _, exponent, significand = fields(a, width)
    return exponent == 0 and significand != 0


def scaled_fma(a, b, c, width):
    """`a * b + c`, the quotient of two numbers of which one was scaled by `2 ** by`, with the scale
    removed and one rounding. A large quotient has a scaled denominator, a small one a scaled numerator."""
    by = 2 * width if exponent(c, width) > FORMATS[width][1] else -2 * width
    if not all(finite(x, width) for x in (a, b, c)):
        return fma(a, b, c, width)
    sign = (sign_of(a, width) ^ sign_of(b, width)) & sign_of(c, width)
    return nearest((value(a, width) * value(b, width) + value(c, width)) * Fraction(2) ** by, width, sign)


def finite(a, width):
    return not is_nan(a, width) and not is_infinite(a, width)


def flush(a, width):
    """Replaces a denormal by zero."""
    return sign_of(a, width) << (width - 1) if is_denormal(a, width) else a


def scale(a, power, width):
    """`a` times a power of two, rounded once."""
    if is_nan(a, width):
        return nan(width)
    if is_infinite(a, width) or value(a, width) == 0:
        return a
    # Beyond these bounds the result is 0 or infinite anyway.
    power = max(-4096, min(4096, power))
    return nearest(value(a, width) * Fraction(2) ** power, width, sign_of(a, width))


def truncate(a, width):
    if is_nan(a, width):
        return nan(width)
    if is_infinite(a, width):
        return a
    number = value(a, width)
    whole = abs(number.numerator) // number.denominator
    return nearest(Fraction(-whole if number < 0 else whole), width, sign_of(a, width))


def convert(a, width, to):
    if is_nan(a, width):
        return nan(to)
    if is_infinite(a, width):
        return infinity(sign_of(a, width), to)
    return nearest(value(a, width), to, sign_of(a, width))


def to_integer(a, width, lowest, most):
    """Rounds towards zero and saturates; a NaN gives 0 (the ISA documents' words for `V_CVT_I32_F32`)."""
    if is_nan(a, width):
        return 0
    if is_infinite(a, width):
        return lowest if sign_of(a, width) else most
    number = value(a, width)
    whole = abs(number.numerator) // number.denominator
    return max(lowest, min(most, -whole if number < 0 else whole))


def compare(a, b, width):
    """-1, 0 or 1; None if either is a NaN."""
    if is_nan(a, width) or is_nan(b, width):
        return None

    def key(x):
        if is_infinite(x, width):
            return Fraction(2) ** 5000 * (-1 if sign_of(x, width) else 1)
        return value(x, width)

    return (key(a) > key(b)) - (key(a) < key(b))
