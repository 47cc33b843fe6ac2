#!/usr/bin/env python3
"""Makes the values of src/interp/values_points.inc anew: each row's function at its arguments in 300-bit arithmetic, rounded once to double.

usage: values_points.py [--check]     needs mpmath (pip install mpmath). --check: says which rows differ and changes nothing.
A new point is a row with its arguments and any value; a new function also wants a line in FUNCTIONS."""
import pathlib
import re
import sys

import mpmath as m

FILE = pathlib.Path(__file__).resolve().parent.parent / "src/interp/values_points.inc"
m.mp.prec = 300


def lgamma(x):
    return m.log(abs(m.gamma(x))) if m.im(x) == 0 else m.loggamma(x)


FUNCTIONS = {
    "stablehlo.exponential": m.exp, "stablehlo.exponential_minus_one": m.expm1, "stablehlo.log": m.log, "stablehlo.log_plus_one": lambda x: m.log(1 + x),
    "stablehlo.logistic": lambda x: 1 / (1 + m.exp(-x)), "stablehlo.sine": m.sin, "stablehlo.cosine": m.cos, "stablehlo.tan": m.tan, "chlo.tan": m.tan,
    "stablehlo.tanh": m.tanh, "stablehlo.sqrt": m.sqrt, "stablehlo.rsqrt": lambda x: 1 / m.sqrt(x),
    "stablehlo.cbrt": lambda x: m.sign(x) * m.cbrt(abs(x)), "stablehlo.power": m.power, "stablehlo.atan2": m.atan2,
    "chlo.acos": m.acos, "chlo.acosh": m.acosh, "chlo.asin": m.asin, "chlo.asinh": m.asinh, "chlo.atan": m.atan, "chlo.atanh": m.atanh,
    "chlo.sinh": m.sinh, "chlo.cosh": m.cosh, "chlo.erf": m.erf, "chlo.erfc": m.erfc, "chlo.erf_inv": m.erfinv, "chlo.lgamma": lgamma,
    "chlo.digamma": m.digamma, "chlo.bessel_i1e": lambda x: m.besseli(1, x) * m.exp(-abs(x)), "chlo.zeta": m.zeta,
    "chlo.polygamma": lambda n, x: m.polygamma(int(n), x),
}


def value(text):
    return m.mpf(float.fromhex(text) if "0x" in text else float(text))


def rounded(x):
    """A double as C writes it."""
    sign, digits, exponent = re.fullmatch(r"(-?)0x([0-9a-f.]+)p([+-]\d+)", float(x).hex()).groups()
    return f"{sign}0x{digits}p{exponent}"


def row(match):
    op, *numbers = re.findall(r'[^,{}"\s]+', match[0])
    pair = match.start() > match.string.index("#define POINTSZ")  # complex numbers
    if pair:
        got = FUNCTIONS[op](m.mpc(*map(value, numbers[:2])))
        got = [rounded(m.re(got)), rounded(m.im(got))]
    else:
        got = [rounded(FUNCTIONS[op](*map(value, numbers[:-1])))]
    given = numbers[:len(numbers) - 1 - pair]
    return "{" + ", ".join([f'"{op}"', *given, *got]) + "}"


def main():
    was = FILE.read_text()
    now = re.sub(r'\{"[^}]*\}', row, was)
    differ = [f"{a.strip(' ,')} -> {b.strip(' ,')}" for a, b in zip(was.splitlines(), now.splitlines()) if a != b]
    if "--check" not in sys.argv:
        FILE.write_text(now)
    print("\n".join(differ + [f"values_points: {len(differ)} of {was.count('{')} rows differ"]))
    return 1 if differ and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
