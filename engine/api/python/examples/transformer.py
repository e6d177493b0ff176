"""The parts of a small transformer in NumPy, forward and backward, for train.py and experts.py.

A forward function returns its result and the values that its backward function needs. `by` is the
gradient of the loss by a result; a backward function returns the gradient by the input, and the
gradients by the matrices `w`. Matrices, activations and messages hold f32, or bf16, the upper half of
an f32; sums inside products, gradients and the optimizer are f32 in both.
"""

import typing

import numpy
import rankine

f32 = numpy.float32


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


def norm(x):
    scale = 1 / numpy.sqrt((x * x).mean(-1, keepdims=True) + f32(1e-5))
    return x * scale, scale


def norm_back(by, y, scale):
    return (by - y * (by * y).mean(-1, keepdims=True)) * scale


def softmax(x):
    e = numpy.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(x, w, length):
    """A head of causal attention: x has a row per token, `length` rows per sequence."""
    q, k, v = numpy.split((x @ w["qkv"]).reshape(-1, length, w["qkv"].shape[1]), 3, axis=-1)
    future = numpy.triu(numpy.full((length, length), -1e9, f32), 1)
    weights = softmax(q @ k.transpose(0, 2, 1) * f32(q.shape[2] ** -0.5) + future)
    context = (weights @ v).reshape(len(x), -1)
    return context @ w["out"], (x, q, k, v, weights, context)


def attention_back(by, saved, w):
    x, q, k, v, weights, context = saved
    by_context = (by @ w["out"].T).reshape(q.shape)
    by_weights = weights * (by_context @ v.transpose(0, 2, 1))
    by_scores = (by_weights - weights * by_weights.sum(-1, keepdims=True)) * f32(q.shape[2] ** -0.5)
    by_qkv = [by_scores @ k, by_scores.transpose(0, 2, 1) @ q, weights.transpose(0, 2, 1) @ by_context]
    by_qkv = numpy.concatenate(by_qkv, axis=-1).reshape(len(x), -1)
    return by_qkv @ w["qkv"].T, {"qkv": x.T @ by_qkv, "out": context.T @ by}


def feed(x, w):
    """The feed-forward part, with SiLU between its two matrices."""
    up = x @ w["up"]
    active = up / (1 + numpy.exp(-up))
    return active @ w["down"], (x, up, active)


def feed_back(by, saved, w):
    x, up, active = saved
    sigmoid = 1 / (1 + numpy.exp(-up))
    by_up = (by @ w["down"].T) * sigmoid * (1 + up * (1 - sigmoid))
    return by_up @ w["up"].T, {"up": x.T @ by_up, "down": active.T @ by}


class Unit:
    """Matrices in one vector, which the ranks of `group` use on different pieces of the batch. They add up the gradients,
    whole or in parts (ZeRO; Rajbhandari et al., 2020)."""

    def __init__(self, group, way, seed, **shapes):
        self.group, self.zero, self.shapes, self.gradients = group, way.zero, shapes, {}
        self.rounded = way.numbers.rounded
        draw = numpy.random.default_rng(seed)
        parts = [draw.standard_normal(shape, f32) * f32(shape[0] ** -0.5) for shape in shapes.values()]
        self.whole = self.flat(parts)
        self.mine = numpy.split(self.whole, group.ranks)[group.rank].copy() if self.zero else self.whole
        self.moments = numpy.zeros((2, len(self.mine)), f32)

    def flat(self, parts):
        vector = numpy.concatenate([part.ravel() for part in parts])
        return numpy.pad(vector, (0, -len(vector) % self.group.ranks))

    def gathered(self):
        whole = numpy.empty(len(self.mine) * self.group.ranks, f32)
        self.group.all_gather(self.mine, whole)
        return whole

    def matrices(self):
        rest, found = self.rounded(self.gathered() if self.zero == 3 else self.whole), {}
        for name, (rows, cols) in self.shapes.items():
            found[name], rest = rest[: rows * cols].reshape(rows, cols), rest[rows * cols :]
        return found

    def add(self, piece, gradients):
        self.gradients[piece] = self.flat([gradients[name] for name in self.shapes])

    def start_sum(self):
        """Starts the sum of the gradients over all pieces; update() waits for it."""
        total = self.sum = tree([self.gradients[piece] for piece in sorted(self.gradients)])
        if self.zero:
            self.sum = numpy.empty_like(self.mine)
            self.request = rankine.start(self.group.reduce_scatter, total, self.sum)
        else:
            self.request = rankine.start(self.group.all_reduce, total)

    def update(self, step, rate):
        """Adam (Kingma & Ba, 2015)."""
        self.request.wait()
        (first, second), g = self.moments, self.sum
        first += f32(0.1) * (g - first)
        second += f32(0.02) * (g * g - second)
        mean, square = first / f32(1 - 0.9**step), second / f32(1 - 0.98**step)
        self.mine -= f32(rate) * mean / (numpy.sqrt(square) + f32(1e-8))
        if self.zero:
            self.whole = self.gathered() if self.zero == 1 else None
