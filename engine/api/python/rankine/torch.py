"""A backend of torch.distributed: ranks are processes of one machine, one rank per process.

    torch.distributed.init_process_group("rankine")     # import rankine.torch is not needed

Tensors are dense, contiguous, and on the CPU. All functions of torch.distributed are supported
except several tensors per rank in one list.
Errors are RuntimeErrors. If a process dies, the calls of its group end on all ranks with an error
that names the rank and process; after destroy_process_group() the other processes can make a new
group.

Results have the same bits on all ranks. Between two ranks, messages are received in the order in
which they were sent: tags must agree in that order, and do not select a message.
"""

from __future__ import annotations

import array
import datetime
import os
import secrets
import socket
from functools import partial
from typing import Any, Callable, Sequence

from rankine._errors import Code, Error, imported, refuse

imported("torch", "rankine.torch, a backend of torch.distributed,")
import torch
import torch.distributed as distributed
import torch._C._distributed_c10d as c10d

if not hasattr(c10d.AllreduceOptions, "asyncOp"):
    raise ImportError(
        f"PyTorch {torch.__version__} has no AllreduceOptions.asyncOp, which rankine.torch "
        "needs; install PyTorch 2.10 or newer"
    )

from rankine import _engine, _torch_operators
from rankine._engine import OPERATIONS, TYPES
from rankine._operations import PreMulSum
from rankine._teams import Communicator
from rankine._torch_calls import ANY, Call, Calls
from rankine._torch_tensors import (
    TYPE_NUMBERS, Elements, Row, Tensors, blocks, check_sizes, none_away_from_root, only, pairs, rank_of, sizes, summands,
)

try:
    c10d.Backend(0, 1)
    _Base: Any = c10d.Backend
except TypeError:  # before 2.14 a Python class can be a whole ProcessGroup only
    _Base = distributed.ProcessGroup

_UNSET = datetime.timedelta(milliseconds=-1)
_OPERATIONS = {
    "SUM": "sum", "AVG": "avg", "PRODUCT": "prod", "MIN": "min", "MAX": "max", "BAND": "band",
    "BOR": "bor", "BXOR": "bxor",
}  # fmt: skip
_NUMBERS = {distributed.ReduceOp(getattr(distributed.ReduceOp, name)): OPERATIONS[ours] for name, ours in _OPERATIONS.items()}


def _seconds(timeout: datetime.timedelta) -> float:
    if timeout <= datetime.timedelta():
        refuse(f"timeout is {timeout / datetime.timedelta(milliseconds=1):g} ms; allowed are 1 and more")
    return timeout.total_seconds()


def _one_after_another(runs: Sequence[Callable[[], object]]) -> Callable[[], object]:
    def run() -> None:
        for one in runs:
            one()

    return runs[0] if len(runs) == 1 else run


def meet(store: distributed.Store, rank: int, ranks: int, timeout: datetime.timedelta) -> Communicator:
    """Makes a communicator of the processes that call this with the same ``store``, which no other
    group uses. Ranks on several machines, which would wait for each other in different /dev/shm
    folders, all get an error."""
    with open("/proc/sys/kernel/random/boot_id") as boot:
        here = f"host {socket.gethostname()}, boot {boot.read().strip()}, {os.readlink('/proc/self/ns/pid')}"

    def get(key: str) -> str:
        store.wait([key], timeout)
        return store.get(key).decode()

    if rank == 0:
        answer = f"name torch.{os.getpid()}.{secrets.token_hex(8)}"
        for other in range(1, ranks):
            there = get(f"rankine/machine/{other}")
            if there != here:
                answer = f"rank 0 is on {here} and rank {other} on {there}; allowed are ranks on one machine"
                break
        store.set("rankine/answer", answer)
    else:
        store.set(f"rankine/machine/{rank}", here)
        answer = get("rankine/answer")
    if not answer.startswith("name "):
        raise Error(Code.mismatch, f"mismatch: {answer}")
    return Communicator(ranks, rank=rank, name=answer[5:], timeout=timeout.total_seconds())


class ProcessGroup(_Base):
    """A group's backend. An invalid argument raises at once, later errors come through the call's
    Work and Future. A call's timeout is the timeout of its options if set, otherwise the group's.
    Blocking calls return None. A list of tensors per rank has one element."""

    # PyTorch's own properties of these names call themselves for a backend in Python.
    supports_splitting = supports_coalescing = supports_shrinking = False
    supports_reconfigure = supports_window = _supports_time_estimate = False

    def __init__(
        self, store: distributed.Store, rank: int, size: int, timeout: datetime.timedelta, name: str = ""
    ) -> None:
        super().__init__(rank, size)
        self._me, self._size = rank, size
        self._timeout, self._name = timeout, name
        member = meet(store, rank, size, timeout).join(rank)
        self._comm = member._handle
        self._member = member
        self._calls = Calls(member, name)
        self._submitted = 0
        self._limit: float | None = None  # of calls without a timeout; None: the group's
        _torch_operators.add_group(name, self)

    def __del__(self) -> None:
        if hasattr(self, "_calls"):
            self._calls.close()

    # For PyTorch before 2.14, in which this object is the whole group.

    @property
    def group_name(self) -> str:
        return self._name

    def getGroupName(self) -> str:
        return self._name

    def _get_backend(self, device: torch.device) -> ProcessGroup:
        return self

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device("cpu")]

    # For every PyTorch.

    def getBackendName(self) -> str:
        return "rankine"

    @property
    def options(self) -> Any:
        return c10d.Backend.Options("rankine", self._timeout)

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        """Sets the timeout of later calls that have none of their own."""
        self._limit = _seconds(timeout)

    def shutdown(self) -> None:
        self._calls.close()
        if self in _wrapped:
            _wrapped.remove(self)

    def abort(self) -> None:
        self._calls.abort()

    def _get_sequence_number_for_group(self) -> int:
        """The number of collectives that this rank has submitted."""
        return self._submitted + self._calls.turn.submitted

    def _set_sequence_number_for_group(self) -> None:
        pass

    def _submit(self, options: Any, run: Callable[[], object], tensors: Tensors, results: int) -> Call | None:
        timeout = options.timeout
        seconds = self._limit if timeout == _UNSET else _seconds(timeout)
        self._submitted += 1
        if not options.asyncOp:
            return self._calls.run(run, seconds)
        return self._calls.submit(Call(self._calls, run, tensors, results, seconds))

    # --- Reductions ---

    def _with_operation(self, op: Any, type_number: int, function: Any, first: tuple[Any, ...], *last: Any) -> Callable[[], object]:
        """Returns a call of function(*first, the operation, *last)."""
        number = _NUMBERS.get(op)
        if number is not None:
            return partial(function, *first, number, *last)
        if op.op.name != "PREMUL_SUM":
            refuse(f"op is {op.op.name}; allowed are {', '.join(_OPERATIONS)} and PREMUL_SUM")
        factor = op.__getstate__()[1]
        packed = PreMulSum(factor.item() if isinstance(factor, torch.Tensor) else factor).packed(list(TYPES)[type_number])

        def run() -> None:
            made = _engine.rkRedOpCreatePreMulSum(packed, type_number, self._comm)
            try:
                function(*first, made, *last)
            finally:
                _engine.rkRedOpDestroy(made, self._comm)

        return run

    def _sum_all(self, tensors: Tensors, opts: Any) -> Call | None:
        runs = []
        for i, tensor in enumerate(tensors):
            x = summands(tensor, f"tensors[{i}]")
            first = (x.address, x.address, x.count, x.type)
            runs.append(self._with_operation(opts.reduceOp, x.type, _engine.rkAllReduce, first, self._comm, x.bytes))
        return self._submit(opts, _one_after_another(runs), tensors, len(tensors))

    def allreduce(self, tensors: Tensors, opts: Any = c10d.AllreduceOptions()) -> Call | None:
        tensor = only(tensors, "tensors")
        if not opts.asyncOp and self._limit is None and opts.timeout == _UNSET:  # the shortest way for the usual call
            form, number = TYPE_NUMBERS.get(tensor.dtype), _NUMBERS.get(opts.reduceOp)
            if form is not None and number is not None and self._calls.turn.all_reduce(tensor, form[0], number):
                return None
        return self._sum_all(tensors, opts)

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = c10d.AllreduceCoalescedOptions()) -> Call | None:
        if not tensors:
            refuse("tensors is empty; allowed are one and more")
        return self._sum_all(tensors, opts)

    def all_reduce_quantised(self, tensor: torch.Tensor, sent: str = "i8", block: int = 128) -> None:
        """As Member.all_reduce_quantised(), in place."""
        x = summands(tensor, "tensor")
        self._submitted += 1
        arguments = x.address, x.address, x.count, x.type, TYPES[sent], block, self._comm
        self._calls.run(partial(_engine.rkAllReduceQuantised, *arguments), None)

    def reduce(self, tensors: Tensors, opts: Any = c10d.ReduceOptions()) -> Call | None:
        x = summands(only(tensors, "tensors"), "tensors[0]")
        first, root = (x.address, x.address, x.count, x.type), rank_of(opts.rootRank, self._size)
        run = self._with_operation(opts.reduceOp, x.type, _engine.rkReduce, first, root, self._comm, x.bytes)
        return self._submit(opts, run, tensors, 1)

    def reduce_scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any = c10d.ReduceScatterOptions()) -> Call | None:
        output = only(outputs, "outputs")
        out = summands(output, "outputs[0]")
        row = Row(only(inputs, "inputs", "lists"), self._size, output, "inputs[0]")
        row.check_own(out.count, self._me, "inputs[0]")
        function = _engine.rkReduceScatter if row.is_even else _engine.rkReduceScatterCounts
        first = (row.address, out.address, out.count if row.is_even else sizes(row.counts), out.type)
        reduce = self._with_operation(opts.reduceOp, out.type, function, first, self._comm, row.bytes)
        return self._submit(opts, row.packed(reduce), [output, *row.tensors], 1)

    def reduce_scatter_tensor_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = c10d.ReduceScatterOptions()) -> Call | None:
        runs = []
        for output, given in pairs(outputs, inputs):
            check_sizes(given, "input", output, "output", self._size)
            x, out = summands(given, "input"), summands(output, "output")
            first = (x.address, out.address, out.count, out.type)
            runs.append(self._with_operation(opts.reduceOp, out.type, _engine.rkReduceScatter, first, self._comm, x.bytes))
        return self._submit(opts, _one_after_another(runs), [*outputs, *inputs], len(outputs))

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    def _reduce_scatter_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = c10d.ReduceScatterOptions()) -> Call | None:
        return self.reduce_scatter_tensor_coalesced([output], [input], opts)

    reduce_scatter_single = _reduce_scatter_base

    # --- Movements ---

    def broadcast(self, tensors: Tensors, opts: Any = c10d.BroadcastOptions()) -> Call | None:
        x = Elements(only(tensors, "tensors"), "tensors[0]")
        root = rank_of(opts.rootRank, self._size)
        return self._submit(opts, partial(_engine.rkBcast, x.address, x.count, x.type, root, self._comm, x.bytes), tensors, 1)

    def barrier(self, opts: Any = c10d.BarrierOptions()) -> Call | None:
        return self._submit(opts, partial(_engine.rkBarrier, self._comm, 0), (), 0)

    def monitored_barrier(self, opts: Any = c10d.BarrierOptions(), wait_all_ranks: bool = False) -> None:
        """Waits for the barrier. If the timeout passes, the error names a missing rank."""
        work = self.barrier(opts)
        if work is not None:
            work.wait()

    def allgather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = c10d.AllgatherOptions()) -> Call | None:
        given = only(inputs, "inputs")
        x = Elements(given, "inputs[0]")
        row = Row(only(outputs, "outputs", "lists"), self._size, given, "outputs[0]")
        row.check_own(x.count, self._me, "outputs[0]")
        function = _engine.rkAllGather if row.is_even else _engine.rkAllGatherCounts
        counts = x.count if row.is_even else sizes(row.counts)
        run = partial(function, x.address, row.address, counts, x.type, self._comm, row.bytes)
        return self._submit(opts, row.unpacked(run), [*row.tensors, given], self._size)

    def allgather_coalesced(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = c10d.AllgatherOptions()) -> Call | None:
        """outputs[r][i] = inputs[i] of rank r."""
        if len(outputs) != self._size:
            refuse(f"outputs has {len(outputs)} lists; allowed are {self._size}, one per rank")
        runs: list[Callable[[], object]] = []
        results: list[torch.Tensor] = []
        tensors = list(inputs)
        for rank, parts in enumerate(outputs):
            if len(parts) != len(inputs):
                refuse(f"outputs[{rank}] has {len(parts)} tensors; inputs has {len(inputs)}")
        for i, given in enumerate(inputs):
            x, row = Elements(given, f"inputs[{i}]"), Row([parts[i] for parts in outputs], self._size, given, "outputs")
            row.check_own(x.count, self._me, "outputs")
            row.check_even("outputs")
            runs.append(row.unpacked(partial(_engine.rkAllGather, x.address, row.address, x.count, x.type, self._comm, row.bytes)))
            results += row.parts
            tensors += row.tensors
        return self._submit(opts, _one_after_another(runs), [*results, *tensors], len(results))

    def allgather_into_tensor_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = c10d.AllgatherOptions()) -> Call | None:
        runs = []
        for output, given in pairs(outputs, inputs):
            check_sizes(output, "output", given, "input", self._size)
            x, out = Elements(given, "input"), Elements(output, "output")
            runs.append(partial(_engine.rkAllGather, x.address, out.address, x.count, x.type, self._comm, out.bytes))
        return self._submit(opts, _one_after_another(runs), [*outputs, *inputs], len(outputs))

    all_gather_single_coalesced = allgather_into_tensor_coalesced

    def _allgather_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = c10d.AllgatherOptions()) -> Call | None:
        return self.allgather_into_tensor_coalesced([output], [input], opts)

    all_gather_single = _allgather_base

    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = c10d.GatherOptions()) -> Call | None:
        given = only(inputs, "inputs")
        x, root = Elements(given, "inputs[0]"), rank_of(opts.rootRank, self._size)
        if self._me != root:
            none_away_from_root(outputs, "outputs")
            return self._submit(opts, partial(_engine.rkGather, x.address, None, x.count, x.type, root, self._comm, x.bytes), inputs, 0)
        row = self._even_row(only(outputs, "outputs", "lists"), x, given, "outputs[0]")
        run = partial(_engine.rkGather, x.address, row.address, x.count, x.type, root, self._comm, row.bytes)
        return self._submit(opts, row.unpacked(run), [*row.tensors, given], self._size)

    def scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any = c10d.ScatterOptions()) -> Call | None:
        output = only(outputs, "outputs")
        out, root = Elements(output, "outputs[0]"), rank_of(opts.rootRank, self._size)
        if self._me != root:
            none_away_from_root(inputs, "inputs")
            return self._submit(opts, partial(_engine.rkScatter, None, out.address, out.count, out.type, root, self._comm, out.bytes), outputs, 1)
        row = self._even_row(only(inputs, "inputs", "lists"), out, output, "inputs[0]")
        run = partial(_engine.rkScatter, row.address, out.address, out.count, out.type, root, self._comm, row.bytes)
        return self._submit(opts, row.packed(run), [output, *row.tensors], 1)

    def _even_row(self, parts: Tensors, own: Elements, like: torch.Tensor, argument: str) -> Row:
        row = Row(parts, self._size, like, argument)
        row.check_even(argument)
        row.check_own(own.count, self._me, argument)
        return row

    # --- All to all ---

    def alltoall_base(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_sizes: Sequence[int],
        input_sizes: Sequence[int],
        opts: Any = c10d.AllToAllOptions(),
    ) -> Call | None:
        """Sizes count rows of dimension 0. An empty list means equal sizes."""
        if output.dtype != input.dtype:
            refuse(f"output is of {output.dtype}, input of {input.dtype}; allowed is one type")
        x, out = Elements(input, "input"), Elements(output, "output")
        sent = blocks(input, input_sizes, self._size, x.count, "input")
        received = blocks(output, output_sizes, self._size, out.count, "output")
        run = partial(self._exchange, x.address, sent, out.address, received, x.type, x.bytes)
        return self._submit(opts, run, [output, input], 1)

    all_to_all_single = alltoall_base

    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = c10d.AllToAllOptions()) -> Call | None:
        if not inputs:
            refuse(f"inputs has 0 tensors; allowed are {self._size}, one per rank")
        given = Row(inputs, self._size, inputs[0], "inputs")
        out = Row(outputs, self._size, inputs[0], "outputs")
        type_number = Elements(inputs[0], "inputs[0]").type
        run = partial(self._exchange, given.address, given.counts, out.address, out.counts, type_number, given.bytes)
        return self._submit(opts, given.packed(out.unpacked(run)), [*out.tensors, *given.tensors], self._size)

    def _exchange(self, x: int, sent: list[int], out: int, received: list[int], type_number: int, size: int) -> None:
        """Each rank knows its own sizes; the engine needs all."""
        n, comm = self._size, self._comm
        mine, table = array.array("Q", sent + received), array.array("Q", bytes(16 * n * n))
        _engine.rkAllGather(mine.buffer_info()[0], table.buffer_info()[0], 2 * n, TYPES["u64"], comm, 16 * n * n)
        counts = [table[2 * n * rank + to] for rank in range(n) for to in range(n)]
        for rank in range(n):
            for to in range(n):
                if (given := counts[n * rank + to]) != (wanted := table[2 * n * to + n + rank]):
                    refuse(
                        f"rank {rank} sends {given} elements to rank {to}, which receives {wanted} from it; "
                        "allowed are equal numbers"
                    )
        if len(set(counts)) == 1:  # one cached plan serves all such calls
            _engine.rkAllToAll(x, out, counts[0], type_number, comm, size)
        else:
            _engine.rkAllToAllCounts(x, out, sizes(counts), type_number, comm, size)

    # --- Messages ---

    def send(self, tensors: Tensors, to: int, tag: int) -> Call:
        return self._message(_engine.rkSend, tensors, rank_of(to, self._size, "dst"), tag)

    def recv(self, tensors: Tensors, source: int, tag: int) -> Call:
        return self._message(_engine.rkRecv, tensors, rank_of(source, self._size, "src"), tag, receives=True)

    def recv_anysource(self, tensors: Tensors, tag: int) -> Call:
        timeout = self._timeout.total_seconds() if self._limit is None else self._limit
        return self._message(_engine.rkRecv, tensors, ANY, tag, receives=True, timeout=timeout)

    def _message(
        self, function: Any, tensors: Tensors, peer: int, tag: int, receives: bool = False, timeout: float | None = None
    ) -> Call:
        x = Elements(only(tensors, "tensors"), "tensors[0]")

        def run(peer: int) -> None:
            function(x.address, x.count, x.type, peer, self._comm, x.bytes)

        return self._calls.submit(Call(self._calls, run, tensors, 1, timeout, tag & 0xFFFFFFFF, peer, receives))


# PyTorch's wrapper of groups for debugging does not keep Python objects alive.
_wrapped: list[ProcessGroup] = []


def create(options: Any, _: object) -> ProcessGroup:
    """Makes the backend of a process group for PyTorch."""
    o = options
    group = ProcessGroup(o.store, o.group_rank, o.group_size, o.timeout, o.group_id)
    if distributed.get_debug_level() == distributed.DebugLevel.DETAIL:
        _wrapped.append(group)
    return group


def register() -> None:
    """Registers the backend. PyTorch calls it for init_process_group("rankine")."""
    if not hasattr(distributed.Backend, "RANKINE"):
        distributed.Backend.register_backend("rankine", create, extended_api=True, devices=["cpu"])


register()
