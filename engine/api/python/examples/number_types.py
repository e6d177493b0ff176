"""The numbers that train.py keeps in matrices and activations and sends in messages: f32, or bf16, the
upper half of an f32. Sums inside products, gradients and the optimizer are f32 in both.
"""

import typing

import numpy
from transformer import f32


class Numbers(typing.NamedTuple):
    rounded: typing.Callable  # to values of the type, as f32
    packed: typing.Callable  # such values for a message
    unpacked: typing.Callable
    element: type  # of a message
    dtype: typing.Optional[str]  # its meaning, for calls that add up


def exact(x):
    return x


def bf16(x):
    """The nearest bf16; of two, the even one."""
    bits = x.view(numpy.uint32)
    return ((bits + (bits >> 16 & 1) + 0x7FFF) & 0xFFFF0000).astype(numpy.uint32).view(f32)


def upper_half(x):
    return (x.view(numpy.uint32) >> 16).astype(numpy.uint16)


def with_lower_half(x):
    return (x.astype(numpy.uint32) << 16).view(f32)


NUMBERS = {
    "f32": Numbers(exact, exact, exact, f32, None),
    "bf16": Numbers(bf16, upper_half, with_lower_half, numpy.uint16, "bf16"),
}


def tree(parts, rounded=exact):
    """Adds up 2^k neighbouring parts by halves."""
    while len(parts) > 1:
        parts = [rounded(a + b) for a, b in zip(parts[::2], parts[1::2])]
    return parts[0]
