"""Linear layers of the decoders: packed for the kernels of the CPU, or plain.

A packed layer holds one copy of its weight in the order in which the kernel reads it; the plain one is dropped. One layout and one order
of summation serve every number of rows, so a row has the same bits whatever other rows a step has, and a new number of rows costs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._python_dispatch import _disable_current_modes

from rtlang.cache.system_memory import release, trim_heap
from rtlang_kernels import ops
from rtlang_kernels.contract.fused_step import LinearLayer, check_indices
from rtlang_kernels.contract.low_bit import LinearInputs, LowBitWeight, can_stack

_TRIM_BYTES = 128 << 20  # of weights that are freed while others are packed, until the C library gives them back


class Linear:
    """y = x @ weight.T + bias, for x [num_rows, in_features] of the weight's dtype.

    Attributes:
        in_features, out_features: sizes of the layer; if gated and packed, out_features is half the rows of the weight.
        packed: the layer of the kernels, or None if the weight is plain.
        is_low_bit: whether weights, or some of them, are codes of few bits.
        is_gated: whether results are gated, see `__init__`.
    """

    __slots__ = ("bias", "in_features", "is_gated", "is_low_bit", "out_features", "packed", "weight")

    def __init__(
        self,
        weight: Tensor | Sequence[Tensor],
        bias: Tensor | None = None,
        *,
        is_gated: bool = False,
        has_fixed_order: bool = False,
    ) -> None:
        """Take over `weight` [out_features, in_features] and `bias` [out_features], on the CPU or not.

        Args:
            weight: one, or some whose outputs follow one another.
            is_gated: a packed layer returns silu(first half) * second half; a plain one leaves that to the caller.
            has_fixed_order: give a row the same bits whatever other rows a step has, also on a GPU.
        """
        self.is_low_bit = self.is_gated = False
        self.packed: LinearLayer | None = None
        self.weight: Tensor | None = None
        self.bias: Tensor | None = None
        weights = [weight] if isinstance(weight, Tensor) else weight
        backend = ops.backend_for(weights[0].device, weights[0].dtype)
        make = backend.packed_linear or (backend.fixed_linear if has_fixed_order else None)
        if make is not None:
            self.packed, self.is_gated = make(weights, bias, is_gated), is_gated
            self.out_features, self.in_features = self.packed.out_features, self.packed.in_features
            return
        self.weight = torch.cat(list(weights)) if len(weights) > 1 else own_memory(weights[0].contiguous())
        self.out_features, self.in_features = self.weight.shape
        self.bias = own_memory(bias.contiguous()) if bias is not None else None

    @classmethod
    def of_parts(
        cls,
        parts: Sequence[Tensor | LowBitWeight],
        bias: Tensor | None = None,
        *,
        dtype: torch.dtype,
        device: torch.device | None = None,
        is_gated: bool = False,
        inputs: LinearInputs = LinearInputs.INT8,
        has_fixed_order: bool = False,
    ) -> Linear:
        """A layer with the outputs of some weights, one after the other; weights are floats of `dtype` or stored in few bits.

        Args:
            device: default: the CPU.  is_gated: see `__init__`; results are not gated if the formats of gate and up differ.
            inputs: type to which layers of few bits round their inputs.
            has_fixed_order: see `__init__`; layers of few bits have it.
        """
        if all(isinstance(part, Tensor) for part in parts):
            floats = [part for part in parts if isinstance(part, Tensor)]
            return cls(floats, bias, is_gated=is_gated, has_fixed_order=has_fixed_order)
        backend = ops.backend_for(device or torch.device("cpu"), dtype)
        others = {LinearInputs.FLOAT: backend.float_input_linear, LinearInputs.FLOAT8: backend.float8_input_linear}
        make, runs = others.get(inputs) or backend.low_bit_linear, _runs_of(parts)
        if len(runs) == 1:
            return cls._of_packed(make(cast(Any, runs[0]), bias, is_gated, dtype), is_gated=is_gated)
        layers: list[Any] = []
        start = 0
        for run in runs:
            size = sum(part.shape[0] for part in run)
            own = None if bias is None else bias[start : start + size]
            if isinstance(run[0], Tensor):
                layers.append(cls(cast(Any, run), own, has_fixed_order=has_fixed_order))
            else:
                layers.append(make(cast(Any, run), own, False, dtype))
            start += size
        join = backend.joined_linear
        joined = join(layers) if join is not None and not any(isinstance(each, Linear) for each in layers) else None
        return cls._of_packed(joined or JoinedLayers(layers), is_gated=False)

    @classmethod
    def _of_packed(cls, packed: LinearLayer, *, is_gated: bool) -> Linear:
        made = cls.__new__(cls)
        made.is_low_bit, made.weight, made.bias = True, None, None
        made.packed, made.is_gated = packed, is_gated
        made.out_features, made.in_features = packed.out_features, packed.in_features
        return made

    def __call__(self, x: Tensor) -> Tensor:
        """x [num_rows, in_features] -> [num_rows, out_features], same dtype."""
        if self.packed is not None:
            return self.packed(x)
        assert self.weight is not None
        return functional.linear(x, self.weight, self.bias)

    def rows(self, indices: Tensor) -> Tensor:
        """Rows [n, in_features] of the weight at int64 `indices` [n], as of an embedding; not of gated layers."""
        if self.packed is not None:
            return self.packed.rows(indices)
        assert self.weight is not None
        return self.weight.index_select(0, indices)

    def add_to(self, residual: Tensor, x: Tensor) -> Tensor | None:
        """Add the result to `residual` [num_rows, out_features] in place and return None; a plain layer returns the result instead, since
        the norm that follows adds it."""
        if self.packed is None:
            return self(x)
        self.packed(x, residual)
        return None


def _runs_of(parts: Sequence[Tensor | LowBitWeight]) -> list[list[Tensor | LowBitWeight]]:
    """Cut parts where neighbors cannot be one weight."""
    runs: list[list[Tensor | LowBitWeight]] = []
    for part in parts:
        last = runs[-1][0] if runs else None
        if isinstance(part, Tensor) or isinstance(last, Tensor) or last is None:
            fits = isinstance(part, Tensor) and isinstance(last, Tensor)
        else:
            fits = can_stack(last, part)
        if fits:
            runs[-1].append(part)
        else:
            runs.append([part])
    return runs


class JoinedLayers:
    """Layers of the same inputs as one `LinearLayer`: the outputs of the first, then those of the next."""

    def __init__(self, layers: Sequence[Linear | LinearLayer]) -> None:
        self.layers = tuple(layers)
        self.in_features = layers[0].in_features
        self.out_features = sum(each.out_features for each in layers)

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """See `LinearLayer`."""
        y = torch.cat([layer(x) for layer in self.layers], 1)
        return y if residual is None else residual.add_(y)

    def rows(self, indices: Tensor) -> Tensor:
        """See `LinearLayer`. On a GPU, where a check would wait for the device, rows of wrong indices are NaN."""
        if indices.device.type == "cpu":
            check_indices(indices, self.out_features)
        found: Tensor | None = None
        for layer in self.layers:
            own = layer.rows(indices.clamp(0, layer.out_features - 1))
            is_own = (indices >= 0) & (indices < layer.out_features)
            found = torch.where(is_own[:, None], own, torch.nan if found is None else found)
            indices = indices - layer.out_features
        assert found is not None
        return found


class PackedModule(torch.nn.Module):
    """Stands in for a `torch.nn.Linear` of a model of `transformers`; accepts any number of leading dimensions.

    `weight` is an empty tensor with the right dtype and device, for code that reads these; computing with it fails.
    """

    weight: Tensor

    def __init__(self, linear: Linear, dtype: torch.dtype, bias: Tensor | None) -> None:
        super().__init__()
        self.linear = linear
        self.in_features, self.out_features, self.bias = linear.in_features, linear.out_features, bias
        self.register_buffer("weight", torch.empty(0, dtype=dtype), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """x [..., in_features] -> [..., out_features]."""
        if not x.numel():
            return x.new_empty((*x.shape[:-1], self.out_features))
        return self.linear(x.reshape(-1, x.shape[-1])).view(*x.shape[:-1], self.out_features)


class PackedEmbedding(Tensor):
    """Stands in for the weight of a `torch.nn.Embedding` or a subclass of it; the rows come from a packed layer.

    An empty tensor with the right dtype; using it in any other way than in `torch.nn.functional.embedding` gives wrong shapes.
    """

    linear: Linear

    @classmethod
    def of(cls, linear: Linear, dtype: torch.dtype, device: torch.device | None = None) -> PackedEmbedding:
        """The weight of the embedding that `linear` holds, on its device; default: the CPU."""
        made = torch.empty(0, dtype=dtype, device=device).as_subclass(cls)
        made.linear = linear
        return made

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, arguments: tuple[Any, ...] = (), options: dict[str, Any] | None = None
    ) -> Any:
        """Look up rows if `function` is an embedding's, else handle the empty tensor as one."""
        if function is functional.embedding:
            indices, weight = arguments[0], arguments[1]
            with _disable_current_modes():  # layers reinterpret bytes and write by address
                rows = weight.linear.rows(indices.reshape(-1))
            return rows.view(*indices.shape, weight.linear.in_features)
        with torch._C.DisableTorchFunctionSubclass():
            return function(*arguments, **(options or {}))


def own_memory(tensor: Tensor) -> Tensor:
    """Return the tensor, or a copy if its memory is a mapped file.

    A tensor read from safetensors is backed by the file until it is copied: overwriting the file in place would change the model, or kill
    the process with a bus error.
    """
    return tensor if tensor.untyped_storage().resizable() else tensor.clone()


def tune_linears(linears: Iterable[Linear]) -> None:
    """Let the kernels measure what depends on the machine, for the packed layers of a model; at most a second, see `rtlang_kernels`."""
    packed = [layer for linear in linears if linear.packed is not None for layer in _layers_of(linear.packed)]
    tune = ops.backend_named("cpu").tune if packed else None
    if tune is not None:
        tune(packed)


def _layers_of(packed: LinearLayer) -> list[LinearLayer]:
    """The layers of the kernels in a layer."""
    if not isinstance(packed, JoinedLayers):
        return [packed]
    found = (each.packed if isinstance(each, Linear) else each for each in packed.layers)
    return [each for each in found if each is not None]


def pack_linears(module: torch.nn.Module, kept: Collection[torch.nn.Module] = ()) -> int:
    """Replace every `torch.nn.Linear` inside `module` but `kept` by a packed one, in place; returns the number of replacements.

    Subclasses of `torch.nn.Linear` are not replaced, since they may compute something else. Each plain weight is freed once it is packed. A
    packed weight that is an embedding as well, as in a tied head, serves as the embedding too. Modules that use `.weight` of a
    replaced layer in another way fail, which the self-check at load time detects.
    """
    uses: Counter[int] = Counter()  # of a weight
    embeddings: dict[int, list[torch.nn.Embedding]] = {}
    for each in module.modules():
        uses.update(id(parameter) for parameter in each.parameters(recurse=False))
        if isinstance(each, torch.nn.Embedding) and each.max_norm is None:
            embeddings.setdefault(id(each.weight), []).append(each)
    made, freed_bytes = [], 0
    # Names, as references to the replaced modules would keep their weights.
    for parent in [each for each in module.modules() if type(each) is not torch.nn.Linear]:
        for name in [name for name, child in parent.named_children() if type(child) is torch.nn.Linear]:
            if any(parent.get_submodule(name) is each for each in kept):
                continue
            weight, bias = parent.get_parameter(f"{name}.weight"), getattr(parent.get_submodule(name), "bias", None)
            if ops.backend_for(weight.device, weight.dtype).packed_linear is None:
                continue
            bias = own_memory(bias.detach()) if bias is not None else None
            made.append(Linear(weight.detach(), bias))
            setattr(parent, name, PackedModule(made[-1], weight.dtype, bias))
            tied = embeddings.get(id(weight), [])
            if uses[id(weight)] > 1 + len(tied):  # somewhere else as well
                continue
            for embedding in tied:
                del embedding.weight
                embedding.weight = PackedEmbedding.of(made[-1], weight.dtype)
            freed_bytes += weight.nbytes
            if not weight.untyped_storage().resizable():  # part of a mapped file, which nothing reads any more
                release(weight.data_ptr(), weight.nbytes)
            del weight
            if freed_bytes >= _TRIM_BYTES:
                trim_heap()
                freed_bytes = 0
    tune_linears(made)
    return len(made)
