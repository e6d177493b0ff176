"""One rank's part of a decoder for serve.py, and the libraries that can connect its ranks."""

import multiprocessing.connection
import os
import tempfile
import time

import numpy
import rankine
from scheduler import LONGEST, PLACES, TOKENS

f32 = numpy.float32


class Rankine:
    def __init__(self, rank, ranks, name):
        self.rank, self.ranks, self.norms = rank, ranks, {}
        options = {"timeout": float("inf"), "placement": "compact"}
        self.me = rankine.Communicator(ranks, rank=rank, name=name, **options).join(rank)
        self.broadcast, self.all_gather, self.close = self.me.broadcast, self.me.all_gather, self.me.close

    def add_up(self, part, stream, normed):
        """Adds the sum of all ranks' parts to the rows of `stream`, and norms these rows into `normed`."""
        if len(part) not in self.norms:
            steps = {"residual": stream, "norm": "rms", "weight": numpy.ones(stream.shape[1], f32), "out": normed}
            self.norms[len(part)] = rankine.RowEpilogue(stream.shape[1], "f32", **steps)
        self.me.all_reduce(part, epilogue=self.norms[len(part)])


class Other:
    """A library with all_reduce(x), broadcast(x) and all_gather(x, out)."""

    def __init__(self, rank, ranks, name):
        self.rank, self.ranks = rank, ranks
        self.open(tempfile.gettempdir() + "/" + name)

    def add_up(self, part, stream, normed):
        self.all_reduce(part)
        stream += part
        normed[:] = norm(stream)

    def close(self):
        pass


class Pipes(Other):
    """Sockets of Python's library: rank 0 adds up and answers."""

    def open(self, path):
        if self.rank == 0:
            with multiprocessing.connection.Listener(path, "AF_UNIX") as door:
                others = [door.accept() for _ in range(1, self.ranks)]
            self.others = [other for _, other in sorted((other.recv(), other) for other in others)]
            return
        while not os.path.exists(path):
            time.sleep(0.01)
        self.root = multiprocessing.connection.Client(path, "AF_UNIX")
        self.root.send(self.rank)

    def all_gather(self, x, out):
        parts = out.reshape(self.ranks, -1)
        if self.rank == 0:
            parts[0] = x.ravel()
            for part, other in zip(parts[1:], self.others):
                other.recv_bytes_into(part.data.cast("B"))
        else:
            self.root.send_bytes(x)
        self.broadcast(out)

    def broadcast(self, x):
        if self.rank > 0:
            self.root.recv_bytes_into(x.data.cast("B"))
        for other in self.others if self.rank == 0 else []:
            other.send_bytes(x)

    def all_reduce(self, x):
        all_parts = numpy.empty((self.ranks, *x.shape), x.dtype)
        self.all_gather(x, all_parts)
        x[:] = all_parts.sum(0)


class Gloo(Other):
    def open(self, path):
        import torch
        import torch.distributed as group

        group.init_process_group("gloo", init_method="file://" + path, rank=self.rank, world_size=self.ranks)
        tensor = torch.from_numpy
        self.all_reduce, self.close = lambda x: group.all_reduce(tensor(x)), group.destroy_process_group
        self.broadcast = lambda x: group.broadcast(tensor(x), 0)
        self.all_gather = lambda x, out: group.all_gather([tensor(part) for part in out], tensor(x))


class Mpi(Other):
    def open(self, path):
        from mpi4py import MPI

        world = MPI.COMM_WORLD
        self.all_reduce, self.broadcast = lambda x: world.Allreduce(MPI.IN_PLACE, x), world.Bcast
        self.all_gather = world.Allgather


LIBRARIES = {"rankine": Rankine, "pipes": Pipes, "gloo": Gloo, "mpi": Mpi}


def norm(x):
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + f32(1e-5))


class Decoder:
    """One rank's heads, columns and vocabulary."""

    def __init__(self, library, options):
        self.library, self.width, self.steps, self.sums = library, options.width, 0.0, 0.0
        draw = numpy.random.default_rng(1)

        def part(rows, *cols, axis=1):  # a rank draws whole matrices and keeps its own part
            whole = draw.standard_normal((rows, *cols), f32) / f32(rows**0.5)
            return numpy.ascontiguousarray(numpy.split(whole, library.ranks, axis)[library.rank])

        width, heads = options.width, options.heads
        self.embedding = draw.standard_normal((options.vocabulary, width), f32)
        self.positions = draw.standard_normal((LONGEST, width), f32)
        self.vocabulary = numpy.split(numpy.arange(options.vocabulary), library.ranks)[library.rank]
        shape = (width, heads, 3 * width // heads)
        self.layers = []
        for _ in range(options.layers):
            qkv, out = part(*shape).reshape(width, -1), part(width, width, axis=0)
            self.layers.append((qkv, out, part(width, 4 * width), part(4 * width, width, axis=0)))
        self.output = part(width, options.vocabulary)
        self.heads = heads // library.ranks
        self.cache = numpy.zeros((options.layers, PLACES, 2, self.heads, LONGEST, width // heads), f32)
        self.stream, self.normed = numpy.empty((2, TOKENS, width), f32)

    def add_up(self, part):
        begin = time.perf_counter()
        self.library.add_up(part, self.stream[: len(part)], self.normed[: len(part)])
        self.sums += time.perf_counter() - begin

    def attend(self, qkv, cache, pieces):
        """qkv: rows of tokens; cache: the earlier keys and values of each place."""
        qkv = qkv.reshape(len(qkv), self.heads, 3, -1).transpose(2, 1, 0, 3)
        context = numpy.empty(qkv.shape[1:], f32)
        begin = 0
        for place, position, count, _ in pieces:
            mine, end = slice(begin, begin + count), position + count
            cache[place, :, :, position:end] = qkv[1:, :, mine]
            keys, values = cache[place, :, :, :end]
            scores = qkv[0, :, mine] @ keys.transpose(0, 2, 1) / f32(keys.shape[2] ** 0.5)
            scores += numpy.triu(numpy.full((count, end), -1e9, f32), position + 1)
            weights = numpy.exp(scores - scores.max(-1, keepdims=True))
            context[:, mine] = weights @ values / weights.sum(-1, keepdims=True)
            begin += count
        return context.transpose(1, 0, 2).reshape(begin, -1)

    def step(self, pieces, tokens):
        """Returns the next token of each piece that wants one."""
        begin, n = time.perf_counter(), len(tokens)
        places = numpy.concatenate([numpy.arange(position, position + count) for _, position, count, _ in pieces])
        self.stream[:n] = self.embedding[tokens] + self.positions[places]
        self.normed[:n] = norm(self.stream[:n])
        for (qkv, out, up, down), cache in zip(self.layers, self.cache):
            self.add_up(self.attend(self.normed[:n] @ qkv, cache, pieces) @ out)
            wide = self.normed[:n] @ up
            self.add_up(wide / (1 + numpy.exp(-wide)) @ down)
        last = numpy.cumsum(pieces[:, 2])[pieces[:, 3] == 1] - 1
        logits = self.normed[last] @ self.output
        best = logits.argmax(-1)
        mine = numpy.stack([logits.max(-1), self.vocabulary[best]], -1).astype(float)
        candidates = numpy.empty((self.library.ranks, *mine.shape))
        if len(last):
            self.library.all_gather(mine, candidates)
        winners = candidates[:, :, 0].argmax(0)
        self.steps += time.perf_counter() - begin
        return candidates[winners, numpy.arange(len(last)), 1].astype(int).tolist()
