"""Every call of torch.distributed is compared with a loop over the ranks; all ranks must have equal bits."""

from __future__ import annotations

import functools
import hashlib
from typing import Callable

import torch
import torch.distributed as dist

from processes import check, main, play

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.uint8, torch.int32, torch.int64]
TYPES = FLOATS + INTEGERS + [torch.bool]
SIZES = [(), (1,), (3, 5), (1000,), (70_001,)]


def data(rank: int, shape: tuple[int, ...], dtype: torch.dtype, salt: int = 0) -> torch.Tensor:
    """The input of a rank: small whole numbers with exact sums and products in every type."""
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=torch.Generator().manual_seed(100 * salt + rank)).bool()
    values = torch.randint(1, 4, shape, generator=torch.Generator().manual_seed(100 * salt + rank))
    return values.to(dtype)


def same_on_all(tensors: list[torch.Tensor]) -> None:
    digest = hashlib.sha256(b"".join(bytes(t.contiguous().view(-1).view(torch.uint8).numpy()) for t in tensors)).hexdigest()
    digests: list[str] = [""] * dist.get_world_size()
    dist.all_gather_object(digests, digest)
    check(len(set(digests)) == 1, f"other bits: {digests}")


def reference(op: dist.ReduceOp, parts: list[torch.Tensor]) -> torch.Tensor:
    dtype = parts[0].dtype
    if dtype == torch.bool:
        either: Callable = {dist.ReduceOp.SUM: torch.logical_or, dist.ReduceOp.MAX: torch.logical_or}.get(op, torch.logical_and)
        return functools.reduce(either, parts)
    if op == dist.ReduceOp.AVG:
        total = functools.reduce(torch.add, [p.to(torch.float64) for p in parts]) / len(parts)
        return total.to(dtype)
    by = {
        dist.ReduceOp.SUM: torch.add,
        dist.ReduceOp.PRODUCT: torch.mul,
        dist.ReduceOp.MIN: torch.minimum,
        dist.ReduceOp.MAX: torch.maximum,
        dist.ReduceOp.BAND: torch.bitwise_and,
        dist.ReduceOp.BOR: torch.bitwise_or,
        dist.ReduceOp.BXOR: torch.bitwise_xor,
    }[op]
    return functools.reduce(by, parts)


def operations(dtype: torch.dtype) -> list[dist.ReduceOp]:
    ops = [dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX]
    if dtype in FLOATS:
        return ops + [dist.ReduceOp.AVG]
    return ops + ([dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR] if dtype in INTEGERS else [])


def reductions(ranks: int) -> None:
    def on_each(rank: int, n: int) -> None:
        for dtype in TYPES:
            for op in operations(dtype):
                for shape in SIZES:
                    what = f"{dtype} {op} {shape}"
                    parts = [data(r, shape, dtype) for r in range(n)]
                    wanted = reference(op, parts)
                    mine = parts[rank].clone()
                    dist.all_reduce(mine, op)
                    check(torch.equal(mine, wanted), f"all_reduce {what}: {mine} is not {wanted}")
                    root = len(shape) % n
                    mine = parts[rank].clone()
                    dist.reduce(mine, root, op)
                    check(rank != root or torch.equal(mine, wanted), f"reduce {what}")
                    blocks = [[data(r, shape, dtype, 1 + b) for b in range(n)] for r in range(n)]
                    wanted = reference(op, [blocks[r][rank] for r in range(n)])
                    mine = torch.empty_like(wanted)
                    dist.reduce_scatter(mine, [b.clone() for b in blocks[rank]], op)
                    check(torch.equal(mine, wanted), f"reduce_scatter {what}")
                    mine = torch.empty_like(wanted)
                    dist.reduce_scatter_tensor(mine, torch.stack(blocks[rank]), op)
                    check(torch.equal(mine, wanted), f"reduce_scatter_tensor {what}")

    play(ranks, on_each)


def same_bits(ranks: int) -> None:
    """Float sums that depend on the order."""

    def on_each(rank: int, n: int) -> None:
        results = []
        for dtype in FLOATS:
            for size in (1, 2, 7, 100, 5_000, 300_000):
                mine = (torch.randn(size, generator=torch.Generator().manual_seed(rank), dtype=torch.float64) * 100).to(dtype)
                dist.all_reduce(mine)
                results.append(mine)
        same_on_all(results)

    play(ranks, on_each)


def movements(ranks: int) -> None:
    def on_each(rank: int, n: int) -> None:
        for dtype in TYPES + [torch.int16, torch.complex64]:
            for shape in SIZES:
                what = f"{dtype} {shape}"
                parts = [data(r, shape, dtype) for r in range(n)]
                root = len(shape) % n
                mine = parts[rank].clone()
                dist.broadcast(mine, root)
                check(torch.equal(mine, parts[root]), f"broadcast {what}")

                gathered = [torch.empty_like(parts[0]) for _ in range(n)]
                dist.all_gather(gathered, parts[rank])
                check(all(map(torch.equal, gathered, parts)), f"all_gather {what}")
                whole = torch.empty((n, *shape), dtype=dtype)
                dist.all_gather(list(whole.unbind()), parts[rank])
                check(torch.equal(whole, torch.stack(parts)), f"all_gather into one {what}")
                if dtype != torch.complex64:  # 1.13 passes complex numbers on as pairs in one of the two calls only
                    whole = torch.empty((n, *shape), dtype=dtype)
                    dist.all_gather_into_tensor(whole, parts[rank])
                    check(torch.equal(whole, torch.stack(parts)), f"all_gather_into_tensor {what}")

                gathered = [torch.empty_like(parts[0]) for _ in range(n)] if rank == root else None
                dist.gather(parts[rank], gathered, root)
                check(gathered is None or all(map(torch.equal, gathered, parts)), f"gather {what}")

                mine = torch.empty_like(parts[0])
                dist.scatter(mine, [p.clone() for p in parts] if rank == root else None, root)
                check(torch.equal(mine, parts[rank]), f"scatter {what}")

                sent = [data(rank, shape, dtype, 1 + to) for to in range(n)]
                wanted = [data(r, shape, dtype, 1 + rank) for r in range(n)]
                received = [torch.empty_like(parts[0]) for _ in range(n)]
                dist.all_to_all(received, sent)
                check(all(map(torch.equal, received, wanted)), f"all_to_all {what}")
                whole = torch.empty((n, *shape), dtype=dtype)
                dist.all_to_all_single(whole, torch.stack(sent))
                check(torch.equal(whole, torch.stack(wanted)), f"all_to_all_single {what}")
        for _ in range(3):
            dist.barrier()

    play(ranks, on_each)


def uneven(ranks: int) -> None:
    """Sizes that differ between ranks, with zeros."""

    def size(a: int, b: int) -> int:
        return (3 * a + 5 * b + a * b) % 7

    def on_each(rank: int, n: int) -> None:
        for dtype in (torch.float32, torch.uint8, torch.int64):
            inputs = [size(rank, to) for to in range(n)]
            outputs = [size(r, rank) for r in range(n)]
            blocks = [[data(r, (size(r, to), 3), dtype, to) for to in range(n)] for r in range(n)]
            wanted = torch.cat([blocks[r][rank] for r in range(n)])
            out = torch.empty_like(wanted)
            dist.all_to_all_single(out, torch.cat(blocks[rank]), outputs, inputs)
            check(torch.equal(out, wanted), "all_to_all_single with sizes")
            received = [torch.empty_like(blocks[r][rank]) for r in range(n)]
            dist.all_to_all(received, blocks[rank])
            check(torch.equal(torch.cat(received), wanted), "all_to_all of unlike tensors")
            parts = [data(r, (size(r, 1),), dtype) for r in range(n)]
            gathered = [torch.empty_like(p) for p in parts]
            dist.all_gather(gathered, parts[rank])
            check(all(map(torch.equal, gathered, parts)), "all_gather of unlike tensors")
            sums = torch.empty(size(rank, 1), dtype=dtype)
            dist.reduce_scatter(sums, [data(rank, (size(r, 1),), dtype, r) for r in range(n)])
            wanted = reference(dist.ReduceOp.SUM, [data(r, (size(rank, 1),), dtype, rank) for r in range(n)])
            check(torch.equal(sums, wanted), "reduce_scatter of unlike tensors")

    play(ranks, on_each)


def coalesced(ranks: int) -> None:
    def on_each(rank: int, n: int) -> None:
        shapes = [(3,), (2, 2), (1000,)]
        mine = [data(rank, s, torch.float32, i) for i, s in enumerate(shapes)]
        all_of = [[data(r, s, torch.float32, i) for i, s in enumerate(shapes)] for r in range(n)]
        summed = [t.clone() for t in mine]
        dist.all_reduce_coalesced(summed)
        for i, total in enumerate(summed):
            check(torch.equal(total, functools.reduce(torch.add, [all_of[r][i] for r in range(n)])), "all_reduce_coalesced")
        gathered = [[torch.empty(s) for s in shapes] for _ in range(n)]
        dist.all_gather_coalesced(gathered, mine)
        for r in range(n):
            check(all(map(torch.equal, gathered[r], all_of[r])), "all_gather_coalesced")

    play(ranks, on_each)


def objects(ranks: int) -> None:
    def on_each(rank: int, n: int) -> None:
        told: list = [None] * n
        dist.all_gather_object(told, {"rank": rank, "text": "x" * rank})
        check(told == [{"rank": r, "text": "x" * r} for r in range(n)], f"all_gather_object: {told}")
        one = [rank, "first"] if rank == 0 else [None, None]
        dist.broadcast_object_list(one, 0)
        check(one == [0, "first"], f"broadcast_object_list: {one}")

    play(ranks, on_each)


if __name__ == "__main__":
    main([reductions, same_bits, movements, uneven, coalesced, objects])
