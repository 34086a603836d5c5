"""Runs a Gluon kernel for sm_90 on the CPU, with what is asynchronous on a GPU done as late, or in as odd an order, as it may be.

The kernel's source is executed with stand-ins for Gluon's modules, so it can be changed to see whether a test would notice.
Memory starts as NaN. The model:

- The roles of a program run one at a time, and which one continues is random at every operation that others can see. Sometimes a role
  stops until nothing else can happen.
- Copies into shared memory happen at random times in random order, and complete on their barrier by bytes.
- A product of matrices reads its operands when it is waited for. Its result is NaN before.
- What a role stores into shared memory must be fenced before its products read it.
- A barrier counts arrivals and bytes, and has a phase. If no role can continue and no copy is left, the program is in a deadlock.
- Loads and stores outside of a tensor fail.

Not modelled: layouts and registers, 32-bit overflow, races between plain stores of different roles.
"""

from __future__ import annotations

import ast
import random
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

NUMPY = {torch.float16: np.float16, torch.float32: np.float32, torch.int32: np.int32}


class Deadlock(AssertionError):
    """No role of a program can continue."""


class Number(int):
    """A scalar of the kernel."""

    def to(self, dtype: Any) -> Number:
        return self


class Values(np.ndarray):
    """A tensor of the kernel."""

    def to(self, dtype: Any) -> Values:
        with np.errstate(over="ignore"):
            return self.astype(dtype)  # type: ignore[no-any-return]


class Pointer:
    """Addresses within one tensor: its elements in order, and offsets."""

    def __init__(self, elements: np.ndarray[Any, Any], offsets: Any = 0) -> None:
        self.elements, self.offsets = elements, offsets
        self.dtype = SimpleNamespace(element_ty=elements.dtype)

    def __add__(self, more: Any) -> Pointer:
        return Pointer(self.elements, self.offsets + more)

    def chosen(self, mask: Any) -> tuple[Any, Any]:
        """Offsets and mask, of one shape; masked offsets must be within the tensor."""
        offsets, chosen = np.broadcast_arrays(self.offsets, True if mask is None else mask)
        inside = (offsets >= 0) & (offsets < len(self.elements))
        assert (inside | ~chosen).all(), "access outside of a tensor"
        return np.where(chosen, offsets, 0), chosen


class Descriptor:
    """Rows of a pool as the tensor memory accelerator sees them; boxes beyond the last row are zero."""

    def __init__(self, pool: Tensor, box: tuple[int, int]) -> None:
        self.rows = pool.flatten(1).numpy()
        self.shape, self.dtype, self.box, self.layout = [Number(n) for n in self.rows.shape], self.rows.dtype, box, None

    def read(self, row: int, column: int) -> np.ndarray[Any, Any]:
        assert min(row, column) >= 0
        found = np.zeros(self.box, self.dtype)
        part = self.rows[row : row + self.box[0], column : column + self.box[1]]
        found[: part.shape[0], : part.shape[1]] = part
        return found


class Shared:
    """A part of shared memory."""

    def __init__(self, world: World, data: np.ndarray[Any, Any]) -> None:
        self.world, self.data, self.dtype = world, data, data.dtype

    def index(self, number: Any) -> Shared:
        assert 0 <= number < len(self.data)
        return Shared(self.world, self.data[int(number)])

    def slice(self, start: int, length: int, dim: int = 0) -> Shared:
        assert start + length <= self.data.shape[dim]
        return Shared(self.world, self.data[(np.s_[:],) * dim + (np.s_[start : start + length],)])

    def permute(self, order: tuple[int, ...]) -> Shared:
        return Shared(self.world, self.data.transpose(order))

    def load(self, layout: Any) -> Values:
        self.world.pause()
        return self.data.copy().view(Values)

    def store(self, values: Any) -> None:
        self.world.pause()
        self.data[...] = values
        self.world.role.unfenced.append(self.data)


class Barrier:
    """An mbarrier: completes a phase when all arrivals and bytes that it expects are there."""

    def __init__(self) -> None:
        self.count = self.missing = 0
        self.bytes = 0
        self.phase = 0

    def update(self, arrivals: int, more_bytes: int) -> None:
        self.missing -= arrivals
        self.bytes += more_bytes
        assert self.missing >= 0, "more arrivals than a barrier counts"
        if self.missing == 0 and self.bytes == 0:
            self.phase, self.missing = self.phase + 1, self.count

    def is_complete(self, parity: int) -> bool:
        """Whether the phase of this parity is complete, as `mbarrier.try_wait.parity` tells."""
        return self.phase % 2 != parity


class Role:
    """A thread of the program that runs while it has the turn, its unfinished products, and its stores that are not fenced."""

    def __init__(self) -> None:
        self.turn = threading.Semaphore(0)
        self.is_ready: Callable[[], bool] = lambda: True
        self.is_slow = False
        self.products: list[Callable[[], None]] = []
        self.unfenced: list[np.ndarray[Any, Any]] = []


class World:
    """One program: its roles, the copies under way, and its barriers."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.role = Role()
        self.roles: list[Role] = []
        self.copies: list[Callable[[], None]] = []
        self.barriers: dict[int, Barrier] = {}
        self.failure: BaseException | None = None
        self.is_over = threading.Semaphore(0)

    def barrier(self, place: Shared) -> Barrier:
        return self.barriers.setdefault(place.data.ctypes.data, Barrier())

    def pause(self, is_ready: Callable[[], bool] = lambda: True) -> None:
        """Let others continue, and come back at some time when `is_ready`."""
        if not self.roles:
            assert is_ready()
            return
        own = self.role
        own.is_ready, own.is_slow = is_ready, self.rng.random() < 0.1
        if self.pass_turn() is not own:
            own.turn.acquire()
        if self.failure is not None:
            raise SystemExit
        self.role = own

    def pass_turn(self) -> Role | None:
        """Give the turn to a role that can continue, after some of the copies."""
        while True:
            while self.copies and self.rng.random() < 0.3:
                self.copies.pop(self.rng.randrange(len(self.copies)))()
            ready = [role for role in self.roles if role.is_ready()]
            fast = [role for role in ready if not role.is_slow]
            if ready and (fast or not self.copies):  # a slow role continues when nothing else can happen
                ready = fast or ready
                chosen = self.rng.choice(ready)
                if chosen is not self.role:
                    chosen.turn.release()
                return chosen
            if not self.copies:
                if self.roles:
                    self.fail(Deadlock("no role can continue, and no copy is left"))
                return None
            self.copies.pop(self.rng.randrange(len(self.copies)))()

    def fail(self, failure: BaseException) -> None:
        self.failure = self.failure or failure
        self.is_over.release()
        for role in self.roles:
            role.turn.release()

    def specialize(self, parts: list[tuple[Callable[..., None], tuple[Any, ...]]], *_: Any) -> None:
        """Run the roles to their end."""

        def run(role: Role, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
            role.turn.acquire()
            if self.failure is not None:
                return
            self.role = role
            try:
                with np.errstate(all="ignore"):
                    function(*arguments)
                assert not role.products, "products that nothing waits for"
            except SystemExit:
                return
            except BaseException as failure:
                self.fail(failure)
                return
            self.roles.remove(role)
            self.role = Role()
            if self.roles:
                self.pass_turn()
            else:
                self.is_over.release()

        self.roles = [Role() for _ in parts]
        threads = [
            threading.Thread(target=run, args=(role, *part)) for role, part in zip(list(self.roles), parts, strict=True)
        ]
        for thread in threads:
            thread.start()
        self.pass_turn()
        self.is_over.acquire()
        for role in list(self.roles):
            role.turn.release()
        for thread in threads:
            thread.join()
        if self.failure is not None:
            raise self.failure
        assert not self.copies, "copies that nothing waits for"


def _values(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: np.asarray(function(*given)).view(Values)


def _language(world: World, program: int) -> SimpleNamespace:
    def load(pointer: Pointer, mask: Any = None, other: Any = 0) -> Any:
        offsets, chosen = pointer.chosen(mask)
        found = np.where(chosen, pointer.elements[offsets], other).astype(pointer.elements.dtype)
        return Number(found) if found.ndim == 0 else found.view(Values)

    def store(pointer: Pointer, values: Any, mask: Any = None) -> None:
        offsets, chosen = pointer.chosen(mask)
        pointer.elements[offsets[chosen]] = np.broadcast_to(values, offsets.shape)[chosen]

    def allocate(dtype: Any, shape: list[int], layout: Any) -> Shared:
        data = np.full(shape, np.nan, dtype) if np.issubdtype(dtype, np.floating) else np.zeros(shape, dtype)
        return Shared(world, data)

    plain = dict.fromkeys(
        ("NVMMADistributedLayout", "DotOperandLayout", "SliceLayout", "BlockedLayout"), lambda *_, **__: None
    )
    return SimpleNamespace(
        **plain,
        constexpr=lambda value: value,
        float32=np.float32,
        int32=np.int32,
        int64=np.int64,
        static_range=range,
        program_id=lambda _: program,
        arange=lambda first, last, layout: np.arange(first, last).view(Values),
        zeros=lambda shape, dtype, layout: np.zeros(shape, dtype).view(Values),
        zeros_like=np.zeros_like,
        where=_values(np.where),
        maximum=lambda a, b: np.maximum(a, b) if isinstance(a, np.ndarray) else Number(max(a, b)),
        minimum=lambda a, b: np.minimum(a, b) if isinstance(a, np.ndarray) else Number(min(a, b)),
        exp2=_values(np.exp2),
        log2=_values(np.log2),
        max=lambda x, axis: x.max(axis),
        sum=lambda x, axis: x.sum(axis),
        load=load,
        store=store,
        convert_layout=lambda x, layout: x,
        inline_asm_elementwise=lambda asm, constraints, args, **_: args[0],
        allocate_shared_memory=allocate,
        warp_specialize=world.specialize,
    )


def _hopper(world: World) -> SimpleNamespace:
    def product(a: Any, b: Shared, acc: Any, use_acc: bool = True, is_async: bool = False) -> Values:
        world.pause()
        operands = [each.data for each in (a, b) if isinstance(each, Shared)]
        assert not any(np.shares_memory(x, y) for x in operands for y in world.role.unfenced), "a store is not fenced"
        result = np.full(acc.shape, np.nan, np.float32).view(Values)

        def compute() -> None:
            found = np.matmul(
                np.asarray(a.data if isinstance(a, Shared) else a).astype(np.float32), b.data.astype(np.float32)
            )
            result[...] = found + acc if use_acc else found

        world.role.products.append(compute)
        return result if is_async else wait(0, [result])

    def wait(num_outstanding: int, deps: list[Values]) -> Any:
        world.pause()
        products = world.role.products
        while len(products) > num_outstanding:
            products.pop(0)()
        return deps[0] if len(deps) == 1 else tuple(deps)

    return SimpleNamespace(
        warpgroup_mma=product, warpgroup_mma_wait=wait, fence_async_shared=lambda: world.role.unfenced.clear()
    )


def _mbarrier(world: World) -> SimpleNamespace:
    def init(place: Shared, count: int) -> None:
        barrier = world.barrier(place)
        barrier.count = barrier.missing = count

    def expect(place: Shared, num_bytes: int) -> None:
        world.pause()
        world.barrier(place).update(1, num_bytes)

    def arrive(place: Shared, count: int = 1) -> None:
        world.pause()
        world.barrier(place).update(count, 0)

    def wait(place: Shared, parity: int) -> None:
        barrier = world.barrier(place)
        world.pause(lambda: barrier.is_complete(parity))

    return SimpleNamespace(init=init, expect=expect, arrive=arrive, wait=wait, MBarrierLayout=lambda: None)


def _tma(world: World) -> SimpleNamespace:
    def load(descriptor: Descriptor, place: list[int], ready: Shared, box: Shared) -> None:
        world.pause()
        barrier = world.barrier(ready)

        def copy() -> None:
            box.data[...] = descriptor.read(*place)
            barrier.update(0, -box.data.nbytes)

        world.copies.append(copy)

    return SimpleNamespace(async_load=load)


def _argument(value: Any) -> Any:
    if isinstance(value, Tensor):
        flat = value.as_strided((value.untyped_storage().nbytes() // value.element_size(),), (1,), 0).numpy()
        return Pointer(flat, value.storage_offset())
    return Number(value) if isinstance(value, int) and not isinstance(value, bool) else value


class SimulatedKernel:
    """A kernel of a module's source, launched as kernel[grid](...) like a compiled one."""

    def __init__(self, source: str, name: str, seed: int) -> None:
        tree = ast.parse(source)
        tree.body = [
            node
            for node in tree.body
            if not (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("triton"))
        ]
        self._code, self._name, self._rng = compile(tree, name, "exec"), name, random.Random(seed)

    def __getitem__(self, grid: tuple[int]) -> Callable[..., None]:
        def launch(*given: Any, num_warps: int, enable_fp_fusion: bool, **constants: Any) -> None:
            for program in range(grid[0]):
                world = World(self._rng)
                space = {
                    "gluon": SimpleNamespace(jit=lambda function: function),
                    "gl": _language(world, Number(program)),
                    "hopper": _hopper(world),
                    "mbarrier": _mbarrier(world),
                    "tma": _tma(world),
                }
                exec(self._code, space)
                space[self._name](*map(_argument, given), **constants)  # type: ignore[operator]

        return launch
