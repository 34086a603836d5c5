"""Reads how a model of `transformers` is divided among ranks: the table that its configuration class publishes.

An entry (of `base_model_tp_plan`, or of the class with the head) gives a module or a parameter a style: "colwise", "rowwise" and so on.
`read_plan` matches the entries with a model and returns the cuts: which ranges of which dimension a rank keeps, and what a layer does
with its input or output. `divide` (divided_layers.py) carries them out. Whether the result is right is not proved here: the decoder
compares the divided model with the whole one.

A rank has whole heads. With fewer KV heads than ranks, several ranks have the same one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from torch import nn

from rtlang.contract.errors import ConfigError

Range = tuple[int, int]
"""Indices [start, stop) of a dimension."""


class Style(Enum):
    """What an entry of a plan says about a module or a parameter.

    COLUMNS: rows of the weight are divided; the output is a part.
    GATHERED_COLUMNS: as above, then the parts are put together.
    ROWS: columns of the weight are divided; the input is a part; outputs are summed.
    ROWS_OF_WHOLE: as above for a whole input, of which the layer takes its part.
    PACKED_COLUMNS, PACKED_ROWS: as COLUMNS and ROWS for two matrices in one, each of which is divided.
    VOCABULARY: the rows of an embedding are divided; outputs are summed.
    SUM: outputs are summed.
    SHARE: the input is divided by the number of ranks, since a sum follows.
    WHOLE: every rank has all of it.
    """

    COLUMNS = auto()
    GATHERED_COLUMNS = auto()
    ROWS = auto()
    ROWS_OF_WHOLE = auto()
    PACKED_COLUMNS = auto()
    PACKED_ROWS = auto()
    VOCABULARY = auto()
    SUM = auto()
    SHARE = auto()
    WHOLE = auto()


_STYLES = {
    "colwise": Style.COLUMNS,
    "colwise_gather_output": Style.GATHERED_COLUMNS,
    "colwise_rep": Style.GATHERED_COLUMNS,
    "rowwise": Style.ROWS,
    "rowwise_split_input": Style.ROWS_OF_WHOLE,
    "rowwise_rep": Style.ROWS_OF_WHOLE,
    "packed_colwise": Style.PACKED_COLUMNS,
    "packed_rowwise": Style.PACKED_ROWS,
    "embedding_rowwise": Style.VOCABULARY,
    "all_reduce": Style.SUM,
    "moe_tp_experts": Style.SUM,
    "moe_identity_expert": Style.SHARE,
    # layouts that matter to training or to the library's own tensors only; an embedding may always be whole
    "embedding_colwise": Style.WHOLE,
    "local_params": Style.WHOLE,
    "mla_kv_a_proj": Style.WHOLE,
    "replicate": Style.WHOLE,
    "replicated_with_grad_allreduce": Style.WHOLE,
}
_BLOCK = re.compile(r"\.\d+(?=\.|$)")
_DIVIDING = frozenset(Style) - {Style.WHOLE, Style.VOCABULARY, Style.GATHERED_COLUMNS}
_NUM_PACKED = 2


@dataclass(frozen=True, slots=True)
class Cut:
    """What a rank does with one module or parameter.

    Attributes:
        name: of the module or parameter in the model.
        style: see `Style`.
        is_parameter: whether `name` is a parameter of its own, such as the weights of all experts.
        ranges: of the divided dimension (of outputs or of inputs, by `style`), what the rank keeps; empty if nothing is divided.
        size: the whole length of that dimension.
    """

    name: str
    style: Style
    is_parameter: bool
    ranges: tuple[Range, ...]
    size: int


def read_plan(model: Any, rank: int, num_ranks: int) -> tuple[Cut, ...]:
    """The cuts of a whole model for one rank.

    Args:
        model: of `transformers`, on any device (meta as well), with whole parameters.
    Raises:
        ConfigError: the family has no plan or one that divides no layer, an entry is not supported, or a size cannot be divided; names
            the module and the sizes.
    """
    plan: dict[str, str] = dict(getattr(model, "tp_plan", None) or {})
    cuts = tuple(_Reader(model, rank, num_ranks).cuts(plan))
    if not any(cut.style in _DIVIDING for cut in cuts):
        kind = "divides none of its layers" if plan else "is missing"
        raise _refusal(
            num_ranks, f"expected 1 for model type {model.config.model_type!r}, whose plan in transformers {kind}"
        )
    return cuts


def kept_numel(model: Any, cuts: Iterable[Cut]) -> int:
    """Elements of the parameters of a whole model that a rank keeps, tied ones once."""
    kept = {id(parameter): parameter.numel() for parameter in model.parameters()}
    for cut in cuts:
        if not cut.ranges:
            continue
        own = sum(stop - start for start, stop in cut.ranges)
        parameters = [model.get_parameter(cut.name if cut.is_parameter else f"{cut.name}.weight")]
        if not cut.is_parameter and cut.style in (Style.COLUMNS, Style.GATHERED_COLUMNS, Style.PACKED_COLUMNS):
            parameters += [bias] if (bias := model.get_submodule(cut.name).bias) is not None else []
        kept.update((id(parameter), parameter.numel() * own // cut.size) for parameter in parameters)
    return sum(kept.values())


class _Reader:
    """Matches the entries of a plan with the modules of one model."""

    def __init__(self, model: Any, rank: int, num_ranks: int) -> None:
        self.model, self.rank, self.num_ranks = model, rank, num_ranks
        self.model_type = model.config.model_type

    def cuts(self, plan: dict[str, str]) -> Iterator[Cut]:
        for name, module in self.model.named_modules():
            word = plan.get(_BLOCK.sub(".*", name))
            if word is not None:
                cut = self.module_cut(name, module, self.style(name, word))
                yield cut
                yield from self.norms_of_heads(cut)
        for name, parameter in self.model.named_parameters():
            word = plan.get(_BLOCK.sub(".*", name))
            if word is not None:
                yield self.parameter_cut(name, tuple(parameter.shape), self.style(name, word))

    def style(self, name: str, word: str) -> Style:
        style = _STYLES.get(word)
        if style is None:
            raise self.fail(f"its plan has {word!r} for {name}, which is not supported")
        return style

    def module_cut(self, name: str, module: nn.Module, style: Style) -> Cut:
        if style in (Style.SUM, Style.SHARE, Style.WHOLE):
            return Cut(name, style, False, (), 0)
        if style is Style.VOCABULARY:
            if not isinstance(module, nn.Embedding):
                raise self.fail(f"{name} is a {type(module).__name__}, not an embedding")
            return Cut(name, style, False, self.uneven(name, module.num_embeddings), module.num_embeddings)
        if type(module) is not nn.Linear:
            raise self.fail(f"{name} is a {type(module).__name__}, not a linear layer")
        size = (
            module.in_features if style in (Style.ROWS, Style.ROWS_OF_WHOLE, Style.PACKED_ROWS) else module.out_features
        )
        if style in (Style.GATHERED_COLUMNS, Style.ROWS_OF_WHOLE):
            return Cut(name, style, False, self.uneven(name, size), size)
        if style in (Style.PACKED_COLUMNS, Style.PACKED_ROWS):
            return Cut(name, style, False, self.even(name, size, _NUM_PACKED), size)
        owner = self.model.get_submodule(name.rpartition(".")[0])
        if not isinstance(getattr(owner, "layer_idx", None), int):  # not part of attention
            return Cut(name, style, False, self.even(name, size), size)
        return Cut(name, style, False, self.heads(name, owner, size), size)

    def parameter_cut(self, name: str, shape: tuple[int, ...], style: Style) -> Cut:
        if style is Style.WHOLE:
            return Cut(name, style, True, (), 0)
        if style not in (Style.COLUMNS, Style.ROWS, Style.PACKED_COLUMNS, Style.PACKED_ROWS):
            raise self.fail(f"its plan has an entry of a layer for the parameter {name}")
        if style in (Style.ROWS, Style.PACKED_ROWS) and len(shape) == 1:  # a bias, which would be added by every rank
            raise self.fail(f"its plan divides the inputs of {name}, which has one dimension")
        is_packed = style in (Style.PACKED_COLUMNS, Style.PACKED_ROWS)
        size = shape[-2] if style in (Style.COLUMNS, Style.PACKED_COLUMNS) and len(shape) > 1 else shape[-1]
        return Cut(name, style, True, self.even(name, size, _NUM_PACKED if is_packed else 1), size)

    def even(self, name: str, size: int, num_packed: int = 1) -> tuple[Range, ...]:
        """Equal parts, of each of `num_packed` matrices in one."""
        own, left = divmod(size, num_packed * self.num_ranks)
        if left:
            kind = f"{num_packed} matrices of {size // num_packed}" if num_packed > 1 else str(size)
            raise self.fail(f"{name} has a size of {kind}, which {self.num_ranks} ranks cannot divide")
        starts = (index * size // num_packed + self.rank * own for index in range(num_packed))
        return tuple((start, start + own) for start in starts)

    def uneven(self, name: str, size: int) -> tuple[Range, ...]:
        """Parts of which the last one may be shorter, for layers whose outputs are put together."""
        own = -(-size // self.num_ranks)
        if own * (self.num_ranks - 1) >= size:
            raise self.fail(f"{name} has a size of {size}, which {self.num_ranks} ranks cannot divide")
        return ((min(self.rank * own, size), min((self.rank + 1) * own, size)),)

    def heads(self, name: str, attention: nn.Module, size: int) -> tuple[Range, ...]:
        """Whole heads of a projection of an attention layer."""
        leaf = name.rpartition(".")[2]
        head_dim = getattr(attention, "head_dim", None)
        if leaf == "v_proj":
            head_dim = getattr(attention, "v_head_dim", None) or head_dim
        if leaf in ("k_proj", "v_proj") and isinstance(head_dim, int):
            num_heads = size // head_dim
            if num_heads < self.num_ranks:
                if self.num_ranks % num_heads:
                    raise self.fail(f"{name} has {num_heads} KV heads, which {self.num_ranks} ranks cannot share")
                start = self.rank * num_heads // self.num_ranks * head_dim
                return ((start, start + head_dim),)
            self.check_heads(name, num_heads, "KV heads")
            return self.even(name, size)
        if leaf == "q_proj" and isinstance(head_dim, int):
            self.check_heads(name, size // head_dim, "heads")
        else:
            config = self.model.config.get_text_config()
            self.check_heads(name, getattr(attention, "num_heads", None) or config.num_attention_heads, "heads")
        return self.even(name, size)

    def norms_of_heads(self, cut: Cut) -> Iterator[Cut]:
        """Cuts that plans leave out: of a norm with a weight for each head of the divided queries or keys."""
        owner_name, _, leaf = cut.name.rpartition(".")
        if cut.style is not Style.COLUMNS or leaf not in ("q_proj", "k_proj"):
            return
        norm = getattr(self.model.get_submodule(owner_name), f"{leaf[0]}_norm", None)
        for name, parameter in () if norm is None else norm.named_parameters(recurse=False):
            num_heads, head_dim = parameter.shape if parameter.ndim == 2 else (0, 0)
            if num_heads * head_dim == cut.size:
                ranges = tuple((start // head_dim, stop // head_dim) for start, stop in cut.ranges)
                yield Cut(f"{owner_name}.{leaf[0]}_norm.{name}", Style.COLUMNS, True, ranges, num_heads)

    def check_heads(self, name: str, num_heads: int, what: str) -> None:
        if num_heads % self.num_ranks:
            raise self.fail(f"{name} has {num_heads} {what}, which {self.num_ranks} ranks cannot divide")

    def fail(self, reason: str) -> ConfigError:
        return _refusal(self.num_ranks, f"not possible for model type {self.model_type!r}: {reason}")


def _refusal(num_ranks: int, reason: str) -> ConfigError:
    return ConfigError("tensor_parallel", num_ranks, reason)
