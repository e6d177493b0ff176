"""Nested groups, several at once, created and destroyed repeatedly."""

from __future__ import annotations

import torch
import torch.distributed as dist

from processes import backend, check, main, play


def total(group: object = None, size: int = 10) -> float:
    x = torch.full((size,), float(dist.get_rank() + 1))
    dist.all_reduce(x, group=group)
    check(bool((x == x[0]).all()), "one sum")
    return float(x[0])


def of_some_ranks(ranks: int) -> None:
    def on_each(rank: int, n: int) -> None:
        others = list(range(1, n))
        group = dist.new_group(others)
        alone = [dist.new_group([r]) for r in range(n)]
        if rank in others:
            check(dist.get_rank(group) == rank - 1, "ranks are counted in the group")
            check(total(group) == sum(r + 1 for r in others), "the sum of the group")
            x = torch.full((3,), float(rank))
            dist.broadcast(x, others[-1], group=group)
            check(float(x[0]) == others[-1], "roots are ranks of all")
        check(total(alone[rank]) == rank + 1, "a group of one")
        check(total() == n * (n + 1) / 2, "the sum of all")

    play(ranks, on_each)


def again(ranks: int) -> None:
    def on_each(rank: int, n: int) -> None:
        for _ in range(20):
            group = dist.new_group(list(range(n)))
            check(total(group) == n * (n + 1) / 2, "the sum of all")
            dist.destroy_process_group(group)

    play(ranks, on_each)


def beside_others(ranks: int) -> None:
    """Calls of several groups in flight at once, together with a gloo group's calls."""

    def on_each(rank: int, n: int) -> None:
        groups = [dist.new_group(list(range(n))) for _ in range(3)] + [dist.new_group(list(range(n)), backend="gloo")]
        for _ in range(10):
            tensors = [torch.full((1000,), float(rank + i)) for i in range(len(groups))]
            works = [dist.all_reduce(t, group=g, async_op=True) for t, g in zip(tensors, groups)]
            for work in reversed(works):
                work.wait()
            for i, tensor in enumerate(tensors):
                check(float(tensor[0]) == n * (n - 1) / 2 + i * n, "each its own sum")

    play(ranks, on_each)


def names(ranks: int) -> None:
    def on_each(rank: int, n: int) -> None:
        check(dist.get_backend() == "rankine", dist.get_backend())
        group = dist.distributed_c10d._get_default_group()
        check(backend().name() == "rankine", backend().name())
        before = group._get_sequence_number_for_group()
        dist.barrier()
        total()
        check(group._get_sequence_number_for_group() == before + 2, "a number for each collective")

    play(ranks, on_each)


if __name__ == "__main__":
    main([of_some_ranks, again, beside_others, names])
