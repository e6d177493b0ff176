"""The calls of a server with tensor-parallel processes: the sums of a layer, the gathered logits, and tensors for the next stage."""

from __future__ import annotations

import importlib.util
import os
import sys
import types

import numpy
import torch
import torch.distributed as dist

from processes import check, main, play
from rankine.device_communicator import DeviceCommunicator


def _of_stage(rank: int) -> dict[str, torch.Tensor]:
    turned = torch.arange(12.0).reshape(3, 4).t()  # not contiguous
    return {"hidden_states": torch.full((5, 16), float(rank)), "residual": torch.arange(7), "turned": turned, "nothing": torch.empty(0, 4)}


def decode(ranks: int) -> None:
    """On a gloo group, as servers have: a column-parallel and a row-parallel product, and logits."""

    def on_each(rank: int, n: int) -> None:
        me = DeviceCommunicator(dist.group.WORLD, torch.device("cpu"), None, "tp:0")
        check((me.rank_in_group, me.world_size, me.ranks) == (rank, n, list(range(n))), "who it is")
        torch.manual_seed(3)
        hidden, inner, words = 12, 8 * n, 10 * n
        up, down, head = torch.randn(hidden, inner), torch.randn(inner, hidden), torch.randn(hidden, words)
        for tokens in (1, 17, 3, 200, 1):  # like changing requests
            x = torch.randn(tokens, hidden, generator=torch.Generator().manual_seed(tokens))
            part = slice(rank * 8, rank * 8 + 8)
            y = me.all_reduce((x @ up[:, part]).relu() @ down[part])
            check(torch.allclose(y, (x @ up).relu() @ down, atol=1e-4), "a layer")
            wanted = y @ head
            logits = me.gather(y @ head[:, rank * 10 : rank * 10 + 10], dst=n - 1)
            check((logits is None) == (rank != n - 1), "gathered at dst")
            check(logits is None or torch.allclose(logits, wanted, atol=1e-4), "logits")
            check(torch.allclose(me.all_gather(y @ head[:, rank * 10 : rank * 10 + 10]), wanted, atol=1e-4), "all_gather")
            check(torch.equal(me.all_gather(y, dim=0), torch.cat([y] * n)), "all_gather along tokens")
        me.destroy()

    play(ranks, on_each, backend="gloo")


def several(ranks: int) -> None:
    """Communicators of all ranks and of two ranks, one after the other."""

    def on_each(rank: int, n: int) -> None:
        pair = dist.new_group([0, 1])
        for _ in range(3):
            everybody = DeviceCommunicator(dist.group.WORLD, unique_name="pp:0")
            check(float(everybody.all_reduce(torch.ones(3))[0]) == n, "of all")
            if rank < 2:
                two = DeviceCommunicator(pair, unique_name="tp:0")
                check(float(two.all_reduce(torch.ones(3))[0]) == 2, "of two")

    play(ranks, on_each)


def stages(ranks: int) -> None:
    """Dictionaries of tensors arrive at the next stage."""

    def on_each(rank: int, n: int) -> None:
        me = DeviceCommunicator(dist.group.WORLD, unique_name="pp:0")
        wanted = _of_stage(7)
        if rank == 0:
            me.send_tensor_dict(wanted, 1)
        elif rank == 1:
            received = me.recv_tensor_dict(0)
            check(list(received) == list(wanted), f"{list(received)}")
            check(all(torch.equal(received[k], wanted[k]) and received[k].dtype == wanted[k].dtype for k in wanted), "the tensors")

    play(ranks, on_each)


def refused_before_anything_is_sent(ranks: int) -> None:
    """A refused dictionary sends nothing, so the next one arrives normally."""

    def on_each(rank: int, n: int) -> None:
        me = DeviceCommunicator(dist.group.WORLD, unique_name="pp:0")
        if rank == 0:
            for wrong in (
                torch.empty(2, device="meta"),
                torch.eye(3).to_sparse(),
                torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.quint8),
            ):
                try:
                    me.send_tensor_dict({"right": torch.ones(2), "wrong": wrong}, 1)
                except ValueError as error:
                    check("tensor_dict['wrong'] is torch." in str(error) and "allowed are dense tensors on the CPU" in str(error), str(error))
                else:
                    raise AssertionError(f"sent {wrong.dtype}, {wrong.layout}, on {wrong.device}")
            me.send_tensor_dict({"right": torch.ones(2)}, 1)
        elif rank == 1:
            check(list(me.recv_tensor_dict(0)) == ["right"], "the right one")

    play(ranks, on_each, backend="gloo")


def arguments(ranks: int) -> None:
    def on_each(rank: int, n: int) -> None:
        for wrong, text in (
            (lambda: DeviceCommunicator(dist.group.WORLD, torch.device("meta")), "device is meta; allowed is cpu"),
            (lambda: me.all_gather(torch.ones(2), dim=1), "dim is 1"),
            (lambda: me.send_tensor_dict({"a": 1}, 0), "tensor_dict['a'] is int"),
            (lambda: me.send_tensor_dict({("a", 1): torch.ones(2)}, 0), "tensor_dict has the key ('a', 1); allowed are strings"),
        ):
            me = DeviceCommunicator(dist.group.WORLD) if "device" not in text else None
            try:
                wrong()
            except ValueError as error:
                check(text in str(error), str(error))
            else:
                raise AssertionError(f"nothing was wrong; expected '{text}'")

    play(ranks, on_each)


def _has(package: str) -> bool:
    found = importlib.util.find_spec(package) is not None
    if not found:
        print(f"note: {package} is not installed, so its groups are not tested")
    return found


def vllm_groups(ranks: int) -> None:
    """The real vLLM takes the platform by its entry point; its tensor-parallel group calls Rankine."""

    def on_each(rank: int, n: int) -> None:
        import vllm.distributed.parallel_state as state
        from vllm.config import VllmConfig, set_current_vllm_config
        from vllm.platforms import current_platform

        check(type(current_platform).__module__ == "rankine.vllm", f"the platform is {type(current_platform)}")
        with set_current_vllm_config(VllmConfig()):
            state.init_distributed_environment(n, rank, "env://", rank, current_platform.dist_backend)
            state.initialize_model_parallel(n)
        group, x, sizes = state.get_tp_group(), torch.full((2, 3), float(rank)), [r + 1 for r in range(n)]
        check(dist.get_backend(group.device_group) == "rankine", dist.get_backend(group.device_group))
        check(type(group.device_communicator).__module__ == "rankine._vllm_communicator", str(type(group.device_communicator)))
        check(torch.equal(group.all_reduce(x.clone()), torch.full((2, 3), float(sum(range(n))))), "all_reduce")
        check(torch.equal(group.all_gather(x, 1), torch.arange(float(n)).repeat_interleave(3).expand(2, -1)), "all_gather")
        gathered = group.all_gatherv(torch.full((rank + 1, 2), float(rank)), 0, sizes)
        check(torch.equal(gathered[:, 0], torch.arange(float(n)).repeat_interleave(torch.tensor(sizes))), "all_gatherv")
        check(torch.equal(group.reduce_scatterv(torch.ones(sum(sizes), 2), 0, sizes), torch.full((rank + 1, 2), float(n))), "reduce_scatterv")
        state.destroy_model_parallel()

    if _has("vllm"):
        play(ranks, on_each)


def ray_groups(ranks: int) -> None:
    """The calls of the real ray.util.collective among actors."""
    if not _has("ray"):
        return
    import ray
    from ray.util import collective
    from ray.util.collective.types import ReduceOp

    import rankine.ray

    @ray.remote
    class Rank:
        def work(self, rank: int, n: int) -> None:
            import rankine.ray

            x, y = numpy.full(5, rank + 1.0, numpy.float32), torch.full((2, 3), rank, dtype=torch.bfloat16)
            collective.init_collective_group(n, rank, backend="rankine", group_name="all")
            collective.allreduce(x, "all")
            assert (x == n * (n + 1) / 2).all(), "allreduce"
            collective.allreduce(x := numpy.full(2, rank), "all", ReduceOp.MAX)
            assert (x == n - 1).all(), "allreduce, max"
            rows = [torch.empty_like(y) for _ in range(n)]
            collective.allgather(rows, y, "all")
            assert all(bool((row == r).all()) for r, row in enumerate(rows)), "allgather"
            collective.broadcast(y, 1, "all")
            assert bool((y == 1).all()), "broadcast"
            collective.reducescatter(z := numpy.empty(3), [numpy.full(3, float(r)) for r in range(n)], "all")
            assert (z == n * rank).all(), "reducescatter"
            collective.reduce(x := numpy.full(4, 2), 0, "all")
            assert (x == (2 * n if rank == 0 else 2)).all(), "reduce"
            collective.barrier("all")
            if rank == 0:
                collective.send(x, 1, "all")
            elif rank == 1:
                collective.recv(x, 0, "all")
                assert (x == 2 * n).all(), "recv"
            collective.destroy_collective_group("all")

    ray.init(num_cpus=ranks, include_dashboard=False, logging_level="ERROR")
    try:
        actors = [Rank.remote() for _ in range(ranks)]
        ray.get([actor.work.remote(rank, ranks) for rank, actor in enumerate(actors)], timeout=400)
    finally:
        ray.shutdown()


def deepspeed_groups(ranks: int) -> None:
    """The real DeepSpeed on a rankine group; its own operator for inference needs no settings any more."""

    def on_each(rank: int, n: int) -> None:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29513")  # names of DeepSpeed's shared memory
        import deepspeed.comm

        deepspeed.comm.init_distributed("rankine", auto_mpi_discovery=False)
        import rankine.deepspeed

        for all_reduce in (deepspeed.comm.all_reduce, deepspeed.comm.inference_all_reduce):
            all_reduce(x := torch.ones(3))
            check(float(x[0]) == n, all_reduce.__name__)
        deepspeed.comm.all_gather_into_tensor(whole := torch.empty(n), torch.tensor([float(rank)]))
        check(torch.equal(whole, torch.arange(float(n))), "all_gather_into_tensor")

    if _has("deepspeed"):
        play(ranks, on_each)


def sglang_platform(ranks: int) -> None:
    """A stand-in of SGLang's platforms: the plugin names a platform whose groups are Rankine's."""

    class CpuSRTPlatform:
        def get_torch_distributed_backend_str(self) -> str:
            return "gloo"

    stand_in = types.ModuleType("sglang.srt.platforms.cpu")
    stand_in.CpuSRTPlatform = CpuSRTPlatform  # type: ignore[attr-defined]
    for name in ("sglang", "sglang.srt", "sglang.srt.platforms"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules[stand_in.__name__] = stand_in
    import rankine.sglang

    check(rankine.sglang.plugin() is None, "the plugin names a platform without SGLANG_USE_CPU_ENGINE")
    os.environ["SGLANG_USE_CPU_ENGINE"] = "1"
    module, _, name = rankine.sglang.plugin().rpartition(".")
    platform = getattr(sys.modules[module], name)()

    def on_each(rank: int, n: int) -> None:
        group = dist.new_group(list(range(n)), backend=platform.get_torch_distributed_backend_str())
        dist.all_reduce(x := torch.ones(3), group=group)
        check((dist.get_backend(group), float(x[0])) == ("rankine", n), "a group of the platform")

    play(ranks, on_each, backend="gloo")


if __name__ == "__main__":
    servers = [vllm_groups, ray_groups, deepspeed_groups, sglang_platform]
    main([decode, several, stages, refused_before_anything_is_sent, arguments, *servers])
