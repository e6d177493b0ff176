"""The parts of a small transformer in NumPy, forward and backward, for train.py.

A forward function returns its result and the values that its backward function needs. `by` is the
gradient of the loss by a result; a backward function returns the gradient by the input, and the
gradients by the matrices `w`.
"""

import numpy

f32 = numpy.float32


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
