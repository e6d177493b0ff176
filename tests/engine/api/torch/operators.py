"""torch.ops.rankine: values, shapes, errors, and that torch.compile keeps the operators."""

from __future__ import annotations

import torch
import torch.distributed as dist

from processes import check, main, play, refused

OPS = torch.ops.rankine


def calls(x: torch.Tensor, group: str) -> list[torch.Tensor]:
    one, other = x * 1, x * 2
    OPS.all_reduce_(one, "sum", group)
    OPS.broadcast_(other, 1, group)
    return [
        one, other, OPS.all_reduce(x, "max", group), OPS.all_gather(x, group), OPS.reduce_scatter(x, "sum", group),
        OPS.all_to_all(x, group),
    ]  # fmt: skip


def values(ranks: int) -> None:
    """Eager and compiled: the values of a loop over ranks, for several types."""

    def on_each(rank: int, n: int) -> None:
        group = dist.group.WORLD.group_name
        graphs: list[torch.fx.GraphModule] = []

        def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> torch.fx.GraphModule:
            graphs.append(graph)
            return graph

        for dtype in (torch.float32, torch.bfloat16, torch.int64):
            parts = [torch.arange(2 * n * 3).view(2 * n, 3).to(dtype) + 2 * r for r in range(n)]
            total, mine = sum(parts), slice(2 * rank, 2 * rank + 2)
            wanted = [total, parts[1] * 2, parts[-1], torch.cat(parts), total[mine], torch.cat([p[mine] for p in parts])]
            for name in ("eager", "aot_eager", backend):
                torch._dynamo.reset()
                run = calls if name == "eager" else torch.compile(calls, backend=name, fullgraph=True)
                for i, (result, right) in enumerate(zip(run(parts[rank], group), wanted, strict=True)):
                    check(torch.equal(result, right), f"{name} {dtype} call {i}: {result} is not {right}")
        kept = {str(node.target) for graph in graphs for node in graph.graph.nodes if node.op == "call_function"}
        for name in ("all_reduce_", "broadcast_", "all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
            check(any(f"rankine.{name}" in target for target in kept), f"{name} is not among {kept}")

    play(ranks, on_each)


def shapes(ranks: int) -> None:
    """The fake kernels have the shapes and types of the others."""

    def on_each(rank: int, n: int) -> None:
        group = dist.group.WORLD.group_name
        x = torch.ones(2 * n, 3)
        for call in (
            lambda: OPS.all_reduce(x, "sum", group),
            lambda: OPS.all_gather(x, group),
            lambda: OPS.reduce_scatter(x, "sum", group),
            lambda: OPS.all_to_all(x, group),
        ):
            with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
                fake = call()
            real = call()
            check((fake.shape, fake.dtype) == (real.shape, real.dtype), f"{fake} is not as {real}")

    play(ranks, on_each)


def wrong(ranks: int) -> None:
    def on_each(rank: int, n: int) -> None:
        group, x = dist.group.WORLD.group_name, torch.ones(4)
        refused("group is 'nobody'; allowed are the group_name of rankine groups: '", lambda: OPS.all_reduce_(x, "sum", "nobody"))
        refused("op is 'add'; allowed are sum, prod", lambda: OPS.all_reduce_(x, "add", group))
        refused("has gaps or another order", lambda: OPS.all_reduce_(torch.ones(4, 4).t(), "sum", group))
        refused("x has 7 rows; allowed are multiples of" if n != 7 else "", lambda: OPS.reduce_scatter(torch.ones(7), "sum", group))
        refused(f"the root is {n}; allowed are 0 to {n - 1}", lambda: OPS.broadcast_(x, n, group))
        OPS.all_reduce_(x, "sum", group)
        check(float(x[0]) == n, "goes on")

    play(ranks, on_each)


if __name__ == "__main__":
    main([values, shapes, wrong])
