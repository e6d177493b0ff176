"""Tensors as arguments of the engine's calls: their checks, and lists of them as one vector."""

from __future__ import annotations

import array
from functools import partial
from typing import Any, Callable, NoReturn, Sequence

import torch

from rankine._engine import BYTES, TYPES
from rankine._errors import refuse

_BYTE = TYPES["u8"]
_NAMES = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int8": "i8",
    "uint8": "u8", "int32": "i32", "uint32": "u32", "int64": "i64", "uint64": "u64", "bool": "b8",
    "complex64": "c64", "complex128": "c128", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2",
}  # fmt: skip
TYPE_NUMBERS = {getattr(torch, name): (TYPES[ours], BYTES[ours]) for name, ours in _NAMES.items() if hasattr(torch, name)}
Tensors = Sequence[torch.Tensor]


class Elements:
    """The elements of a tensor for the engine; elements of types that it lacks count as bytes."""

    __slots__ = ("address", "count", "type", "bytes")

    def __init__(self, tensor: torch.Tensor, argument: str) -> None:
        if not (tensor.is_cpu and tensor.is_contiguous()):
            _refuse_tensor(tensor, argument)
        dtype = tensor.dtype
        if dtype.is_complex and tensor.is_conj() or tensor.is_neg():
            _refuse_tensor(tensor, argument)
        form = TYPE_NUMBERS.get(dtype)
        self.address, self.count = tensor.data_ptr(), tensor.numel()
        if form is None:
            self.count *= tensor.element_size()
            self.type, self.bytes = _BYTE, self.count
        else:
            self.type, self.bytes = form[0], self.count * form[1]


def _refuse_tensor(tensor: torch.Tensor, argument: str) -> NoReturn:
    if tensor.layout != torch.strided:
        refuse(f"{argument} is {tensor.layout}; allowed are dense tensors")
    if not tensor.is_cpu:
        refuse(f"{argument} is on {tensor.device}; allowed are tensors on the CPU")
    if not tensor.is_contiguous():
        refuse_gaps(argument, tensor.shape, tensor.stride())
    refuse(f"{argument} is a conjugate or negative view; allowed are tensors with their values in memory (resolve_conj, resolve_neg)")


def refuse_gaps(argument: str, shape: Sequence[int], strides: Sequence[int]) -> NoReturn:
    refuse(f"{argument} has gaps or another order (sizes {list(shape)}, strides {list(strides)}); allowed are contiguous tensors")


def check_summands(argument: str, dtype: object) -> None:
    if dtype not in TYPE_NUMBERS:
        refuse(f"{argument} is of {dtype}; reduced are {', '.join(map(str, TYPE_NUMBERS))}")


def summands(tensor: torch.Tensor, argument: str) -> Elements:
    elements = Elements(tensor, argument)
    check_summands(argument, tensor.dtype)
    return elements


def only(tensors: Sequence[Any], argument: str, kind: str = "tensors") -> Any:
    if len(tensors) != 1:
        refuse(f"{argument} has {len(tensors)} {kind}; allowed is one")
    return tensors[0]


def rank_of(rank: int, ranks: int, argument: str = "the root") -> int:
    if not 0 <= rank < ranks:
        refuse(f"{argument} is {rank}; allowed are 0 to {ranks - 1}")
    return rank


def check_sizes(whole: torch.Tensor, whole_name: str, part: torch.Tensor, part_name: str, ranks: int) -> None:
    if whole.dtype != part.dtype:
        refuse(f"{whole_name} is of {whole.dtype}, {part_name} of {part.dtype}; allowed is one type")
    if whole.numel() != part.numel() * ranks:
        refuse(
            f"{whole_name} has {whole.numel()} elements; {part_name} has {part.numel()}; "
            f"allowed is one part for each of {ranks} ranks"
        )


def blocks(tensor: torch.Tensor, sizes: Sequence[int], ranks: int, count: int, argument: str) -> list[int]:
    """Returns the elements of each block of a tensor that is divided along dimension 0."""
    rows = tensor.shape[0] if tensor.dim() > 0 else 1
    if not sizes:
        if rows % ranks != 0:
            refuse(f"{argument} has {rows} rows and no sizes; allowed are multiples of {ranks} (ranks)")
        return [count // ranks] * ranks
    if len(sizes) != ranks:
        refuse(f"{argument} has {len(sizes)} sizes; allowed are {ranks}, one per rank")
    if min(sizes) < 0:
        refuse(f"{argument} has a size of {min(sizes)}; allowed are 0 and more")
    if sum(sizes) != rows:
        refuse(f"{argument} has {rows} rows and sizes of {sum(sizes)} in all")
    return [size * (count // rows if rows else 0) for size in sizes]


class Row:
    """A list of tensors, one per rank, as one vector: their own memory if they lie side by side,
    otherwise a copy."""

    def __init__(self, parts: Tensors, ranks: int, like: torch.Tensor, argument: str) -> None:
        if len(parts) != ranks:
            refuse(f"{argument} has {len(parts)} tensors; allowed are {ranks}, one per rank")
        self.parts = list(parts)
        self.counts: list[int] = []
        self.address, end, is_one = 0, None, True
        self.bytes = 0
        for rank, part in enumerate(parts):
            elements = Elements(part, f"{argument}[{rank}]")
            if part.dtype != like.dtype:
                refuse(f"{argument}[{rank}] is of {part.dtype}; the other argument is of {like.dtype}")
            self.counts.append(elements.count)
            self.bytes += elements.bytes
            if elements.count > 0:
                is_one = is_one and end in (None, elements.address)
                self.address = elements.address if end is None else self.address
                end = elements.address + elements.bytes
        self.is_even = len(set(self.counts)) == 1
        self.copy: torch.Tensor | None = None
        if not is_one:
            self.copy = torch.empty(sum(part.numel() for part in parts), dtype=like.dtype)
            self.address = self.copy.data_ptr()

    def check_own(self, count: int, rank: int, argument: str) -> None:
        if self.counts[rank] != count:
            refuse(
                f"{argument}[{rank}] has {self.counts[rank]} elements of this rank's; its own tensor has {count}"
            )

    def check_even(self, argument: str) -> None:
        if not self.is_even:
            refuse(f"{argument} has tensors of several sizes; allowed is one size")

    @property
    def tensors(self) -> list[torch.Tensor]:
        """All tensors that calls use."""
        return self.parts if self.copy is None else [*self.parts, self.copy]

    def packed(self, run: Callable[[], object]) -> Callable[[], object]:
        """Returns ``run`` after a copy of the parts into the vector."""
        return run if self.copy is None else partial(self._run_between, run, True)

    def unpacked(self, run: Callable[[], object]) -> Callable[[], object]:
        """Returns ``run`` before a copy of the vector into the parts."""
        return run if self.copy is None else partial(self._run_between, run, False)

    def _run_between(self, run: Callable[[], object], packs: bool) -> None:
        assert self.copy is not None
        pieces = self.copy.split([part.numel() for part in self.parts])
        with torch.no_grad():
            for part, piece in zip(self.parts, pieces) if packs else ():
                piece.copy_(part.reshape(-1))
            run()
            for part, piece in zip(self.parts, pieces) if not packs else ():
                part.view(-1).copy_(piece)


def sizes(values: Sequence[int]) -> bytes:
    return array.array("Q", values).tobytes()


def pairs(outputs: Tensors, inputs: Tensors) -> Any:
    if len(outputs) != len(inputs):
        refuse(f"outputs has {len(outputs)} tensors, inputs has {len(inputs)}; allowed are equal numbers")
    return zip(outputs, inputs)


def none_away_from_root(tensors: Sequence[Any], argument: str) -> None:
    if tensors:
        refuse(f"{argument} is given on a rank that is not the root; allowed is none there")
