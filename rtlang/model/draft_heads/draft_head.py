"""The layers of a draft head.

For each position a head joins the embedding of a token with the states before that token, and predicts the states after it. Those of the
model come first; where the model has not been yet, the head goes on from its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from rtlang.contract.errors import ModelLoadError
from rtlang.model.decoders.native.layer_loading import LayerLoader, norm_weight
from rtlang.model.decoders.native.layers import AttentionPart, Layer, LayerStep, normed
from rtlang.model.decoders.native.rotations import Rotations
from rtlang.model.decoders.native_decoder import NativeDecoder
from rtlang.model.draft_heads.head_config import HeadConfig, HeadKind
from rtlang.model.layers.attention import HeadGeometry, StepAttention
from rtlang.model.layers.linear import Linear
from rtlang.model.layers.weight_source import WeightSource, matrix
from rtlang_kernels.contract.low_bit import LowBitWeight

_NO_LOGIT = float("-inf")
_COMPARED_ROWS = 4096


class DraftHead:
    """A loaded head. Construct with `DraftHead.load`.

    Attributes:
        config: what it computes.
        geometries: of its layers, whose K and V follow those of the model.
        num_states: width of the states that it takes and gives.
    """

    def __init__(
        self, config: HeadConfig, decoder: NativeDecoder, source: WeightSource, token_ids: Tensor | None
    ) -> None:
        own, native = config.layers, config.layers.native
        assert native is not None
        self.config, self._decoder, self._native = config, decoder, native
        self.num_states = own.hidden_size
        self._geometry = HeadGeometry(own.num_q_heads, own.num_kv_heads, own.head_dim, own.head_dim)
        self.geometries = (self._geometry,) * own.num_layers
        self._first = len(decoder.geometries)
        device, wide = decoder.device, decoder.config.hidden_size
        make: Callable[..., Linear] = partial(Linear.of_parts, dtype=decoder.dtype, device=device)
        self._loader = LayerLoader(own, source, make)
        is_third = config.kind is HeadKind.EAGLE_3
        num_joined = len(config.tapped_layers) * wide if is_third else self.num_states + wide
        bias = source.tensor("fc.bias", (self.num_states,)) if source.has("fc.bias") else None
        self._join = make([matrix(source, "fc.weight", (self.num_states, num_joined))], bias)
        self._norms = self._input_norms(own.hidden_size, wide)
        self._norm = None
        if config.kind is not HeadKind.EAGLE:
            self._norm = norm_weight(own, source, "norm", own.hidden_size)
        self._layers = [self._layer(index) for index in range(own.num_layers)]
        self._embed = self._embedding(make)
        self._output = None
        if source.has("lm_head.weight") and config.kind is not HeadKind.MTP:
            self._output = make([matrix(source, "lm_head.weight", (config.num_outputs, own.hidden_size))])
        elif config.num_outputs != decoder.config.vocab_size:
            raise ModelLoadError("draft_model", f"the head has no lm_head.weight for its {config.num_outputs} tokens")
        self._token_ids = token_ids
        ropes = [attention.rope for attention in native.attentions]
        self._rotations = Rotations(ropes, own.head_dim, device)

    @classmethod
    def load(
        cls, config: HeadConfig, decoder: NativeDecoder, source: WeightSource, token_ids: Tensor | None = None
    ) -> DraftHead:
        """Load a head.

        Args:
            decoder: the model, whose embedding and output layer serve where the head has none of its own.
            source: the tensors of the head's checkpoint by the names of that checkpoint.
            token_ids: int64 [num_outputs], the token of each logit; None if these are the first tokens.
        Raises:
            ModelLoadError: a tensor is missing or has another shape than the sizes of the model imply.
        """
        return cls(config, decoder, RenamedSource(source, config.names), token_ids)

    def combine(self, states: Tensor) -> Tensor:
        """The states [num_tokens, num_states] that `forward` takes, from those of the model: the last ones, or of EAGLE-3 the inputs of
        the tapped layers side by side."""
        return self._join(states) if self.config.kind is HeadKind.EAGLE_3 else states

    def forward(self, attention: StepAttention, states: Tensor) -> Tensor:
        """Write K and V of a step and predict states.

        Args:
            attention: the step; its tokens are those after the states.
            states: [num_tokens, num_states], from `combine` or an earlier call.
        Returns:
            [num_tokens, num_states], for `project` and for later calls.
        """
        plan, batch = attention.plan(self._geometry), attention.batch
        rotations = self._rotations.up_to(int(batch.seq_lens.max()))
        embeddings = self._embed(attention.input_ids)
        places = (*[rotations[0]] * self._first, *rotations)  # by layer number
        step = LayerStep(attention, plan, places, states, self._native.rms_norm_eps)
        if self.config.kind is HeadKind.EAGLE_3:
            residual, x = self._first_of_eagle_3(embeddings, states, step)
            rest = self._layers[1:]
        else:
            if self._norms is not None:
                embeddings, states = (
                    normed(each, None, norm, step) for each, norm in zip((embeddings, states), self._norms, strict=True)
                )
            residual, x, rest = self._join(torch.cat((embeddings, states), 1)), None, self._layers
        for layer in rest:
            x = layer.forward(residual, x, step)
        if self.config.kind is HeadKind.MTP:
            return normed(residual, x, self._norm, step)
        return residual if x is None else residual + x

    def reserve(self, longest: int) -> None:
        """Allocate everything that depends on sequence length, since captured graphs keep the addresses."""
        self._rotations.reserve(longest)

    def project(self, states: Tensor) -> Tensor:
        """Logits [M, vocab_size] of rows returned by `forward`; -inf for tokens that the head does not predict."""
        if self.config.kind is HeadKind.EAGLE_3:
            eps = self._native.rms_norm_eps
            assert self._norm is not None
            states = self._decoder.backend.add_rms_norm(states, None, self._norm, eps)
        logits = self._decoder.project(states) if self._output is None else self._output(states)
        if self._token_ids is None and logits.shape[1] == self._decoder.config.vocab_size:
            return logits
        wide = logits.new_full((len(logits), self._decoder.config.vocab_size), _NO_LOGIT)
        if self._token_ids is None:
            wide[:, : logits.shape[1]] = logits
            return wide
        return wide.index_copy_(1, self._token_ids, logits)

    def _first_of_eagle_3(self, embeddings: Tensor, states: Tensor, step: LayerStep) -> tuple[Tensor, Tensor | None]:
        """The first layer, which attends to embeddings and states side by side; returns a residual and what is not added to it yet."""
        assert self._norms is not None
        layer = self._layers[0]
        inputs = [normed(each, None, norm, step) for each, norm in zip((embeddings, states), self._norms, strict=True)]
        residual = (inputs[1] if self.config.norms_residual else states).clone()
        assert isinstance(layer.attention, AttentionPart)
        x = layer.attention.add_to(residual, torch.cat(inputs, 1), step, layer.number)
        h = normed(residual, x, layer.before_feed_forward, step)
        return residual, layer.feed_forward.add_to(residual, h, step)

    def _layer(self, index: int) -> Layer:
        layer = self._loader.layer(
            index, num_inputs=2 * self.num_states if self.config.kind is HeadKind.EAGLE_3 and not index else None
        )
        return replace(layer, number=self._first + index)

    def _input_norms(self, own: int, wide: int) -> tuple[Tensor, Tensor] | None:
        """The norms of embeddings and of states."""
        names = {
            HeadKind.EAGLE_3: ("model.layers.0.input_layernorm", "model.layers.0.hidden_norm"),
            HeadKind.MTP: ("pre_fc_norm_embedding", "pre_fc_norm_hidden"),
        }.get(self.config.kind)
        if names is None:
            return None
        first, second = (self._loader.norm(name, size) for name, size in zip(names, (wide, own), strict=True))
        return first, second

    def _embedding(self, make: Callable[..., Linear]) -> Callable[[Tensor], Tensor]:
        """The head's own embedding, if it has one that is not a copy of the model's."""
        source, decoder, name = self._loader.source, self._decoder, "embed_tokens.weight"
        if self.config.kind is HeadKind.MTP or not source.has(name):
            return decoder.embed
        own = matrix(source, name, (decoder.config.vocab_size, decoder.config.hidden_size))
        if isinstance(own, Tensor):
            starts = range(0, len(own), _COMPARED_ROWS)
            chunks = (torch.arange(start, min(start + _COMPARED_ROWS, len(own)), device=own.device) for start in starts)
            if all(torch.equal(own[chunk], decoder.embed(chunk)) for chunk in chunks):
                return decoder.embed
        return make([own]).rows


class RenamedSource:
    """A `WeightSource` under other names.

    Args:
        names: names in `source` by the new ones.
    """

    def __init__(self, source: WeightSource, names: Mapping[str, str]) -> None:
        self._source, self._names = source, names

    def has(self, name: str) -> bool:
        """See `WeightSource`."""
        return name in self._names and self._source.has(self._names[name])

    def tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """See `WeightSource`."""
        return self._source.tensor(self._names.get(name, name), shape)

    def low_bit(self, name: str, shape: tuple[int, ...]) -> LowBitWeight | None:
        """See `WeightSource`."""
        return self._source.low_bit(self._names.get(name, name), shape)
