"""A row-parallel layer with equal bits on 1, 2, 4 and 8 ranks, for a token alone or in any batch.

    python3 row_parallel.py

Ranks divide K, the inner dimension of x @ w. K has LEAVES parts on any number of ranks:

    leaf    x @ w of one part: per element of the result, one k after the other. Each product and each
            sum rounds to f32: a fused multiply-add has other bits. BLAS has other bits too, because it
            orders the additions by the shapes and the processor.
    tree    a rank adds up its leaves by halves; the order "tp_invariant" continues this tree among ranks

Partial sums are f32; the result rounds once, in the epilogue of the all-reduce. Column-parallel layers
add nothing up among ranks: leaf() alone fixes their bits. A server's matrix multiply has the same bits
if each element of its result has these additions, in any order of the elements.
"""

import hashlib

import numpy
import rankine
from transformer import f32, tree

LEAVES, TOKENS, K, WIDTH = 8, 12, 64, 48


def leaf(x, w):
    y = numpy.zeros((len(x), w.shape[1]), f32)
    for column, row in zip(x.T, w):
        y += column[:, None] * row
    return y


def part(me, whole, axis):
    return numpy.split(whole, me.ranks, axis)[me.rank]


def row_parallel(me, x, w, epilogue=None):
    """Returns x @ w on every rank. x: a row per token, with this rank's columns; w: this rank's rows."""
    leaves = LEAVES // me.ranks
    y = tree([leaf(*pair) for pair in zip(numpy.split(x, leaves, 1), numpy.split(w, leaves))])
    me.all_reduce(y, epilogue=epilogue)
    return y


def numbers(seed, *shape):
    """Numbers from -1 to 1, equal on any machine."""
    x = numpy.arange(seed << 32, (seed << 32) + numpy.prod(shape), dtype=numpy.uint64)
    for factor in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9):
        x = (x ^ x >> numpy.uint64(31)) * numpy.uint64(factor)
    return ((x >> numpy.uint64(40)).astype(f32) / f32(2**23) - f32(1)).reshape(shape)


def answers(me, tokens=range(TOKENS), fused=True, **options):
    """Returns a row per token: the bits of the sum, of the residual plus the sum, and of its norm in bf16."""
    tokens = list(tokens)
    x, residual, w = numbers(1, TOKENS, K)[tokens], numbers(2, TOKENS, WIDTH)[tokens], numbers(3, K, WIDTH)
    normed = numpy.empty(residual.shape, numpy.uint16)
    norm = rankine.RowEpilogue(WIDTH, "f32", residual=residual, norm="rms", out=normed, out_dtype="bf16")
    me.set_options(order="tp_invariant", **options)
    y = row_parallel(me, part(me, x, 1), part(me, w, 0), norm if fused else None)
    if not fused:
        norm.apply(y)
    return numpy.concatenate([y.view(numpy.uint16), residual.view(numpy.uint16), normed], 1)


def hash_of(rows):
    return hashlib.sha256(rows.astype("<u2").tobytes()).hexdigest()[:16]


if __name__ == "__main__":
    for ranks in (1, 2, 4, 8):
        with rankine.Team(ranks) as team:
            print(f"{ranks} ranks: {' '.join({hash_of(rows) for rows in team.run(answers)})}")
