"""The calls of a server with tensor-parallel processes: the sums of a layer, the gathered logits, and tensors for the next stage."""

from __future__ import annotations

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


if __name__ == "__main__":
    main([decode, several, stages, refused_before_anything_is_sent, arguments])
