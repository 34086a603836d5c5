"""Runs causal models of `transformers` with paged attention.

The model's own code computes everything except attention: one function is registered in the library's attention interface;
another, in its mask interface, describes a mask instead of building it. The model receives one flattened ragged batch (batch size 1) with
a position per token and no cache. A self-check at load time detects models that bypass the interface or depend on the batch shape; they
are rejected with an error that names the model type.

With several ranks each keeps its part of the model (rtlang.model.parallel) and calls this decoder for the same steps.

Operations of torch between the linear layers and attention may give a token other bits if a step has other tokens. `is_deterministic`
computes steps in tiles of fixed size instead (fixed_tiles.py), and refuses models for which that is not enough.
"""

from __future__ import annotations

import inspect
import itertools
import logging
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rtlang.cache.system_memory import trim_heap
from rtlang.contract.errors import ConfigError, ModelLoadError
from rtlang.model.decoders import falcon
from rtlang.model.decoders.bit_check import has_equal_bits
from rtlang.model.decoders.fixed_tiles import TILE_SIZES, tiles_of
from rtlang.model.decoders.float32_math import Float32Math
from rtlang.model.decoders.latent_attention import absorb_projections, multiply_out, pack_projections, projections_of
from rtlang.model.decoders.low_bit_loading import load_weights
from rtlang.model.decoders.recurrent.mixers import Mixers, in_dtype
from rtlang.model.decoders.self_check import CHECK_LENGTHS, check_sequences, check_steps, nudged, relative_errors
from rtlang.model.decoders.transformers_loading import load_model, progress_reported
from rtlang.model.layers.attention import HeadGeometry, StepAttention, Window
from rtlang.model.layers.linear import own_memory, pack_linears
from rtlang.model.layers.low_bit_modules import low_bit_modules, stand_ins, wrong_layer
from rtlang.model.layers.packed_experts import PackedExperts, pack_experts
from rtlang.model.layers.states import StateShape, StepStates
from rtlang.model.layers.weight_source import CheckpointWeights
from rtlang.model.loading.published import quiet, read_config
from rtlang.model.parallel.divided_layers import divide
from rtlang.model.parallel.group import RankGroup, in_turn
from rtlang.model.parallel.plan_table import read_plan
from rtlang_kernels.contract.low_bit import LinearInputs

logger = logging.getLogger(__name__)

# Largest relative error of a token's logits in float32. Good models have up to 1e-5; where attention or a router decides between equals,
# a change of the last bits of an embedding (by _NUDGE) moves logits far, and paged attention may by _NUDGE_RATIO times as much.
_TOLERANCE, _MAX_TOLERANCE = 1e-3, 0.3
_NUDGE, _NUDGE_RATIO = 2e-6, 20.0
# Median relative error of logits that are computed in a narrow dtype, against float32: at most so many times the stock model's, or so much
# where that has almost none. Paged attention with packed layers has 0.9 to 1.1 times (tests.support.models.hub_table).
_NOISE_RATIO, _LEAST_NOISE = 2.0, 2e-2
# Median relative error of logits with layers of few bits against the stock model's with the same layers: at most so many times as the last
# bits of embeddings move them, which are as large as a step of a rounded input.
_SWAY_RATIO, _FEW_BITS_NUDGE = 4.0, 2.0**-7
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class LocalMask:
    """Placeholder for an attention mask: attention to the last `size` positions, or within chunks of `size`."""

    size: int
    is_chunked: bool


class TransformersDecoder:
    """A `transformers` model as a `Decoder`. Constructed by `TransformersDecoder.load`."""

    def __init__(
        self,
        model: Any,
        path: str,
        dtype: torch.dtype,
        device: torch.device | None = None,
        *,
        is_deterministic: bool = False,
        group: RankGroup | None = None,
    ) -> None:
        self.model, self.path, self.dtype, self.device = model, path, dtype, device or torch.device("cpu")
        self._group, self._is_divided = group, False
        self.geometries: tuple[HeadGeometry, ...] = ()
        self.state_shapes: tuple[StateShape, ...] = ()
        self._mixers = Mixers(model)
        self._takes_positions = "position_ids" in inspect.signature(model.forward).parameters
        self.is_row_invariant = is_deterministic  # otherwise sums of torch may depend on the number of tokens
        self._tile_sizes = TILE_SIZES[0]
        self._window_of: dict[int, Window] = {}  # by layer, learned from the masks of the self-check
        self._has_masks = True  # whether the library still builds masks
        self._step: StepAttention | None = None  # set during forward
        self._called: list[int] = []  # layers that called the interface in this forward pass
        self._probed: dict[int, HeadGeometry] = {}
        # whether packed layers have some weights as they are stored, and whether the decoder computes in float32 without any rounding
        self._has_few_bits = bool(low_bit_modules(model))
        self._is_exact = dtype is torch.float32 and not self._has_few_bits
        self._sequences: list[list[int]] = []  # of the self-check
        # the stock model's logits of each, computed in float32: [len(sequence), vocab_size]
        self._stock: list[Tensor] = []
        self._noise = 0.0  # median relative error of the stock model's logits in `dtype`
        self._few_bits_stock: list[Tensor] = []  # as _stock, with layers of few bits and in `dtype`
        self._sway = torch.zeros(len(CHECK_LENGTHS))  # by how much a nudge moves the stock logits of each, at most

    @classmethod
    def load(
        cls,
        directory: Path,
        dtype: torch.dtype,
        *,
        dummy_seed: int | None,
        on_progress: Callable[[float], None] = lambda fraction: None,
        device: torch.device | None = None,
        is_deterministic: bool = False,
        group: RankGroup | None = None,
        weights: CheckpointWeights | None = None,
        inputs: LinearInputs = LinearInputs.INT8,
    ) -> TransformersDecoder:
        """Load a checkpoint (or seeded noise of its shape, with `dummy_seed`), replace its attention, and check the result.

        Args:
            on_progress: called with the fraction of tensors, or of the bytes of `weights`, read so far.
            device: device to move the model to; default: the CPU.
            is_deterministic: give each token the same bits whatever else a step computes; on the CPU.
            group: the ranks among which the model is divided, all of which load it at the same time; default: this process has all of it.
            weights: of the checkpoint; those of few bits stay as they are stored, or with `group` are multiplied out. Default: the
                library reads a float checkpoint.
            inputs: see `Linear.of_parts`.
        Raises:
            ConfigError: with `is_deterministic`, the bits of a token depend on other tokens nevertheless; with `group`, the model cannot be
                divided among them; names the model type.
            ModelLoadError: transformers cannot load the model, or it fails the self-check; names the model type.
        """
        config = read_config(directory)

        def load() -> TransformersDecoder:
            if weights is None:
                with quiet(), progress_reported(on_progress):
                    model = load_model(directory, config, dtype, dummy_seed)
            else:
                with quiet():
                    model = load_weights(
                        directory,
                        weights,
                        config,
                        dtype,
                        device,
                        on_progress,
                        keeps_codes=group is None,
                        inputs=inputs,
                    )
            model = model.eval().requires_grad_(False)
            decoder = cls(model, str(directory), dtype, device, is_deterministic=is_deterministic, group=group)
            decoder._prepare_check()
            return decoder

        with torch.inference_mode():
            decoder = load() if group is None else in_turn(group, load, str(directory))
            decoder._take_over()
        return decoder

    def forward(self, attention: StepAttention) -> Tensor:
        """See `Decoder`. Returns logits directly, because the output heads of these models differ too much to call separately."""
        if self.is_row_invariant:
            return self._forward_tiles(attention)
        batch = attention.batch
        self._begin(attention)
        try:
            return self._call_model(attention.input_ids[None], batch.positions[None], batch.logit_indices)[0]
        finally:
            self._end()

    def _begin(self, attention: StepAttention) -> None:
        """Let the layers compute this step from now on."""
        self._step, self._called = attention, []
        self._mixers.step.states = attention.states

    def _end(self) -> None:
        self._step = self._mixers.step.states = None

    def _forward_tiles(self, attention: StepAttention) -> Tensor:
        """As `forward`, in tiles of fixed size."""
        found: list[Tensor] = []
        is_wanted: list[Tensor] = []
        wanted = attention.batch.logit_indices
        memory = None if attention.states is None else attention.states.memory
        spare_slots = memory.spare_slots if memory is not None else ()
        for tile in tiles_of(attention.batch, self._tile_sizes, spare_slots):
            batch = tile.batch
            states = StepStates(memory, batch.states) if memory is not None and batch.states is not None else None
            filling = tile.size - batch.num_tokens
            ids, positions = (functional.pad(each, (0, filling)) for each in (batch.input_ids, batch.positions))
            # all logits or those of one token: the output layer sees fixed shapes too
            keep = torch.arange(tile.size if len(batch.logit_indices) else 1)
            self._begin(StepAttention(batch, attention.kv, states=states))
            try:
                logits = self._call_model(ids[None], positions[None], keep)[0]
            finally:
                self._end()
            found.append(logits[batch.logit_indices])
            is_wanted.append((wanted >= tile.start) & (wanted < tile.start + batch.num_tokens))
        logits = torch.cat(found)
        order = torch.cat([mine.nonzero()[:, 0] for mine in is_wanted])
        return torch.empty_like(logits).index_copy_(0, order, logits)

    def project(self, states: Tensor) -> Tensor:
        """See `Decoder`."""
        return states

    @property
    def windows(self) -> tuple[Window, ...]:
        """See `Decoder`."""
        return tuple(self._window_of[layer] for layer in range(len(self.geometries)))

    def reserve(self, longest: int) -> None:
        """See `Decoder`. Does nothing: the library computes its rotations in every step."""

    def _call_model(self, input_ids: Tensor, positions: Tensor, keep: Tensor) -> Tensor:
        """Logits of one forward pass: [B, len(keep), vocab_size] of tokens [B, T]."""
        options = {"position_ids": positions.to(self.device)} if self._takes_positions else {}
        keep = keep.to(self.device)
        out = self.model(input_ids=input_ids.to(self.device), use_cache=False, logits_to_keep=keep, **options)
        logits: Tensor = out.logits
        return logits

    def _attend(self, module: Any, query: Tensor, key: Tensor, value: Tensor, mask: object, options: Any) -> Tensor:
        """The attention of one layer: query [1, Hq, T, D], key [1, Hk, T, D], value [1, Hk, T, Dv] -> [1, T, Hq, Dv]."""
        if mask is not None and not isinstance(mask, LocalMask):
            raise self._refusal("it builds its own attention masks")
        unknown = _per_head_option(options)
        if unknown is not None:
            raise self._refusal(
                f"its attention takes {unknown!r} of each query and head, which paged attention does not"
            )
        # attention is one of several kinds of layers where there are recurrent ones, and some models call one module in several places
        layer = len(self._called) if self._mixers else getattr(module, "layer_idx", None)
        if not isinstance(layer, int):
            raise self._refusal("its attention layers have no layer_idx")
        self._called.append(layer)
        q, k, v = query[0].transpose(0, 1), key[0].transpose(0, 1), value[0].transpose(0, 1)  # [T, H, D]
        num_computed, head_dim, latent = len(q), q.shape[2], projections_of(module)
        if latent is not None and self._step is not None:
            q = latent.absorbed(q)
        if self._step is not None and self.is_row_invariant:  # tokens that fill a tile have no pages
            num_tokens = self._step.batch.num_tokens
            q, k, v = q[:num_tokens], k[:num_tokens], v[:num_tokens]
        if self._step is None:
            geometry = HeadGeometry(q.shape[1], k.shape[1], k.shape[2], v.shape[2])
            self._probed[layer] = geometry if latent is None else latent.geometry(q.shape[1])
            return q.new_zeros((1, *q.shape[:2], v.shape[2] if latent is None else latent.v_head_dim))
        window, chunk = self._window(layer, mask, options.get("sliding_window"))
        scale, sinks = options.get("scaling"), options.get("s_aux")
        dtype = self._step.kv.dtype
        out = self._step.run(
            layer,
            q.to(dtype).contiguous(),
            k.to(dtype).contiguous(),
            v.to(dtype).contiguous(),
            scale=float(scale) if scale is not None else head_dim**-0.5,
            sliding_window=window,
            chunk_size=chunk,
            soft_cap=options.get("softcap") or None,
            sinks=None if sinks is None else sinks.to(dtype),
        )
        if len(out) < num_computed:
            out = torch.cat([out, out.new_zeros((num_computed - len(out), *out.shape[1:]))])
        if latent is not None:
            out = latent.expanded(out)
        return out.to(query.dtype)[None]

    def _window(self, layer: int, mask: LocalMask | None, given: int | None) -> Window:
        """Sliding window and chunk size of a layer, checked to be constant."""
        if not self._has_masks:
            return self._window_of[layer]
        window: Window = (given or None, None)
        if mask is not None:
            window = (given or None, mask.size) if mask.is_chunked else (mask.size, None)
        if self._window_of.setdefault(layer, window) != window:
            raise self._refusal(f"the window of layer {layer} changes from {self._window_of[layer]} to {window}")
        return window

    def _prepare_check(self) -> None:
        """Compute the stock logits of the self-check, and keep this rank's part of the model, on the device.

        With several ranks the first one computes these logits, on the CPU. Of weights that are mapped files, the others read their parts
        only.
        """
        parameters = inspect.signature(self.model.forward).parameters
        # without attention, positions have no effect
        is_known = "logits_to_keep" in parameters and (self._takes_positions or bool(self._mixers))
        if not is_known:
            raise self._refusal("its forward method must accept both position_ids and logits_to_keep")
        indexer = next((type(each).__name__ for each in self.model.modules() if "Indexer" in type(each).__name__), None)
        if indexer is not None:  # it may select all keys of a text as short as those of the check
            raise self._refusal(f"it selects the keys that a token attends to ({indexer})")
        obstacle = self._mixers.obstacle()
        if obstacle is not None:
            raise self._refusal(f"it has recurrent layers, of which {obstacle}")
        vocab = int(self.model.config.get_text_config(decoder=True).vocab_size)
        self._sequences = check_sequences(vocab)
        multiply_out(self.model)
        self._mixers.multiply_out()
        group = self._group
        if group is None:
            self.model.to(self.device)
            self._run_stock()
            return
        cuts = read_plan(self.model, group.rank, group.size)
        device, self.device = self.device, torch.device("cpu")
        if group.is_first:
            self._run_stock()
        else:
            self._stock = [torch.empty(length, vocab, dtype=torch.float32) for length in CHECK_LENGTHS]
        divide(self.model, cuts, group)
        self._is_divided, self.device = True, device
        self.model.to(device)
        trim_heap()

    def _run_stock(self) -> None:
        """Compute the stock model's logits in float32, and how far those in its own dtype, with its packed layers, are from them."""
        # first in its own dtype: tables that the code of a model rounds stay rounded
        narrow = [] if self._is_exact else self._stock_logits(self._sequences)
        with self._exact_math(), self._mixers.exact_constants():
            self._stock = self._stock_logits(self._sequences)
            swayed = map(relative_errors, self._nudged_logits(_NUDGE), self._stock)
            self._sway = torch.stack([each.max() for each in swayed])
        if not narrow:
            return
        if self._has_few_bits:
            wrong = wrong_layer(self.model)
            if wrong is not None:
                raise self._refusal(f"a layer of its quantized weights computes something else: {wrong}")
            self._few_bits_stock = narrow
            errors = torch.cat(list(map(relative_errors, self._nudged_logits(_FEW_BITS_NUDGE), narrow)))
        else:
            errors = torch.cat(list(map(relative_errors, narrow, self._stock)))
        if not bool(errors.isfinite().all()):
            raise self._refusal(f"its activations overflow in {self.dtype}; choose another dtype")
        self._noise = float(errors.median())

    def _nudged_logits(self, amount: float) -> list[Tensor]:
        """The stock model's logits for embeddings whose lanes are changed by `amount` times as much as they are."""
        nudge = self.model.get_input_embeddings().register_forward_hook(
            lambda _, __, embeddings: nudged(embeddings, amount)
        )
        try:
            return self._stock_logits(self._sequences)
        finally:
            nudge.remove()

    def _exact_math(self) -> ExitStack:
        """A context in which the model computes in float32, whatever its dtype, and functions stand in for layers of few bits."""
        stack = ExitStack()
        if self.dtype is not torch.float32:
            stack.enter_context(Float32Math())
        stack.enter_context(stand_ins(self.model))
        return stack

    def _take_over(self) -> None:
        """Replace the model's attention, record its head geometry, pack its linear layers, and compare with the stock model."""
        sequences, stock = self._sequences, self._stock
        if self._group is not None:
            stock = [self._group.broadcast(logits.to(self.device)) for logits in stock]
            self._noise = float(self._group.broadcast(torch.tensor([self._noise], device=self.device)))
            self._sway = self._group.broadcast(self._sway.to(self.device))
        vocab = stock[0].shape[1]
        few_bits_stock = self._few_bits_stock
        self._sequences, self._stock, self._few_bits_stock = [], [], []
        self._replace_attention()
        absorb_projections(self.model)
        self._disable_padding_check()
        self._mixers.take_over()
        self._called = []
        self._guarded(torch.tensor([sequences[0][:1]]), torch.zeros((1, 1), dtype=torch.int64), torch.tensor([0]))
        self.state_shapes = self._mixers.shapes
        self._check_calls()
        self.geometries = tuple(self._probed[layer] for layer in range(len(self._probed)))
        if any(geometry.num_q_heads % geometry.num_kv_heads for geometry in self.geometries):
            raise self._refusal("its number of query heads is not a multiple of its number of KV heads")
        if not self._is_exact:
            with self._exact_math():
                self._check_exact(self._logit_errors(sequences, stock, torch.float32))
        is_host = self.device.type == "cpu"
        num_packed = pack_experts(self.model)
        num_packed += pack_linears(self.model, self._mixers.unpackable()) if is_host else 0
        pack_projections(self.model)
        for parameter in self.model.parameters():
            parameter.data = own_memory(parameter.data)
        for module in self.model.modules():
            for name, buffer in list(module.named_buffers(recurse=False)):
                setattr(module, name, own_memory(buffer))  # assigning `data` alone would leave it a view of the file
        logger.debug("packed %d linear layers and layers of experts", num_packed)
        errors = self._logit_errors(sequences, few_bits_stock or stock, self.dtype)
        if self._is_exact:
            self._check_exact(errors)
        else:
            self._check_noise(errors)
        if self.is_row_invariant:
            self._check_bits(vocab)

    def _replace_attention(self) -> None:
        self._name = name = _register(self)
        if self.model.config.model_type == "falcon":
            from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

            obstacle = falcon.replace_attention(self.model, ALL_ATTENTION_FUNCTIONS[name])
            if obstacle is not None:
                raise self._refusal(obstacle)
            self.model.config._attn_implementation = name  # selects the mask function
            return
        with quiet():
            self.model.set_attn_implementation(name)
        if self.model.config._attn_implementation != name:
            raise self._refusal("its attention cannot be replaced")

    def _disable_padding_check(self) -> None:
        """Stop the library from searching the tokens for padding, which would synchronise with the device in every step.

        The padding token of the configuration stays, since the code of some models reads it.
        """
        for module in self.model.modules():
            if hasattr(module, "warn_if_padding_and_no_attention_mask"):
                module.warn_if_padding_and_no_attention_mask = _do_nothing

    def _disable_masks(self) -> None:
        """Stop the library from building masks, which would read positions and so synchronise with the device in every step.

        The windows of all layers are known by now.
        """
        from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

        ALL_MASK_ATTENTION_FUNCTIONS._global_mapping.pop(self._name, None)
        self._has_masks = False

    def _stock_logits(self, sequences: list[list[int]]) -> list[Tensor]:
        """Logits [len(sequence), vocab_size], float32, of each sequence, with the stock model's attention."""
        longest = max(map(len, sequences))
        ids = torch.tensor([[*sequence, *sequence[: longest - len(sequence)]] for sequence in sequences])
        positions = torch.arange(longest)
        logits = self._guarded(ids, positions.expand(ids.shape), positions).float()
        return [each[: len(sequence)] for each, sequence in zip(logits, sequences, strict=True)]

    def _guarded(self, input_ids: Tensor, positions: Tensor, keep: Tensor) -> Tensor:
        """Run a forward pass of the self-check; any exception from the model's code becomes a refusal."""
        try:
            with quiet():  # the stock model advises to install kernels that later steps would not use
                return self._call_model(input_ids, positions, keep)
        except (ModelLoadError, ConfigError):
            raise
        except Exception as error:  # third-party code of any model type may raise anything
            raise self._refusal(f"its code fails on a flattened batch: {error!r}") from error

    def _check_calls(self) -> None:
        if self._mixers:
            if len(self._called) != len(self._probed):
                raise self._refusal("the number of its attention layers depends on the step")
            return
        num_layers = int(self.model.config.get_text_config(decoder=True).num_hidden_layers)
        if sorted(self._called) != list(range(num_layers)):
            raise self._refusal(
                f"{len(set(self._called))} of its {num_layers} layers use the attention interface, in {len(self._called)} calls; "
                "every layer must use it exactly once"
            )

    def _logit_errors(self, sequences: list[list[int]], stock: list[Tensor], dtype: torch.dtype) -> list[Tensor]:
        """Relative errors of the logits of each sequence against the stock model's, in the steps of the self-check and with pages of
        `dtype`."""
        errors: list[list[Tensor]] = [[] for _ in sequences]
        shapes = in_dtype(self.state_shapes, dtype)
        for step in check_steps(sequences, self.geometries, shapes, dtype, self.device):
            batch = step.attention.batch
            self._begin(step.attention)
            try:
                found = self._guarded(batch.input_ids[None], batch.positions[None], batch.logit_indices)[0].float()
            finally:
                self._end()
            self._check_calls()
            self._disable_masks()  # the second step runs like all later ones
            parts = found.split_with_sizes([stop - start for start, stop in step.spans])
            for index, (start, stop) in enumerate(step.spans):
                errors[index].append(relative_errors(parts[index], stock[index][start:stop]))
        return [torch.cat(each) for each in errors]

    def _check_exact(self, errors: list[Tensor]) -> None:
        """Check logits that were computed in float32.

        A router may choose another expert where two are equally good to the last bits, which also moves the tokens that follow. One
        sequence without such a token proves a model with experts right.
        """
        has_experts = self._has_experts()
        sway = float(self._sway.min() if has_experts else self._sway.max())
        tolerance = min(max(_NUDGE_RATIO * sway, _TOLERANCE), _MAX_TOLERANCE)
        worst = [float(each.max()) for each in errors]  # NaN if an error is
        good = [each <= tolerance for each in worst]
        if not (any(good) if has_experts else all(good)):
            raise self._refusal(
                f"with paged attention its logits differ from the stock model's (relative error {max(worst):.2g})"
            )

    def _check_noise(self, errors: list[Tensor]) -> None:
        """Check that logits in a narrow dtype are not much further from float32 than the stock model's; with layers of few bits, not much
        further from the stock model's than last bits of embeddings move those.

        That attention is right was proved in float32; this is about packed layers and the kernels of the dtype.
        """
        errors_of_all = torch.cat(errors)
        error = float(errors_of_all.median())
        ratio = _SWAY_RATIO if self._has_few_bits else _NOISE_RATIO
        if bool(errors_of_all.isfinite().all()) and error <= max(ratio * self._noise, _LEAST_NOISE):
            return
        if self._has_few_bits:
            reason = f"in {self.dtype} its logits differ from the stock model's by {error:.2g}, which last bits move by {self._noise:.2g}"
            raise self._refusal(reason)
        raise self._refusal(
            f"in {self.dtype} its logits differ from those in float32 by {error:.2g}, the stock model's by "
            f"{self._noise:.2g}; choose dtype='float32'"
        )

    def _has_experts(self) -> bool:
        """Whether a layer has experts, of which a token uses some."""
        return self._has_stacks() or any(isinstance(each, PackedExperts) for each in self.model.modules())

    def _has_stacks(self) -> bool:
        """Whether a layer has stacked matrices that are not packed, of which a token uses some."""
        stacks = (each for each in self.model.get_decoder().modules() if isinstance(each, torch.nn.ModuleList))
        layers = [each for each in stacks if len(each) == len(self.geometries)]
        shapes = (parameter.shape for stack in layers for parameter in stack.parameters())
        return any(sum(size > 1 for size in shape) > 2 for shape in shapes)  # weights of convolutions are no stacks

    def _check_bits(self, vocab: int) -> None:
        """Check that the logits of a sequence are equal to the last bit however steps are cut."""
        kind = f"expected False for model type {self.model.config.model_type!r}"
        if self._has_stacks():
            raise ConfigError("deterministic", True, f"{kind}: the number of tokens per expert depends on the step")
        shapes = in_dtype(self.state_shapes, self.dtype)
        for self._tile_sizes in TILE_SIZES:
            if has_equal_bits(self.forward, vocab, self.geometries, shapes, self.dtype):
                logger.debug("tiles of %d and %d tokens", self._tile_sizes.small, self._tile_sizes.large)
                return
        raise ConfigError("deterministic", True, f"{kind}: its bits depend on the other tokens of a step")

    def _refusal(self, reason: str) -> ModelLoadError | ConfigError:
        if self._is_divided:
            kind = f"expected 1 for model type {self.model.config.model_type!r}, divided by its plan in transformers"
            return ConfigError("tensor_parallel", self._group.size if self._group else 1, f"{kind}: {reason}")
        return ModelLoadError(self.path, f"model type {self.model.config.model_type!r} is not supported: {reason}")


def _per_head_option(options: Any) -> str | None:
    """The name of an argument of attention with a number for each query of each head (a bias by distance, a sink), which changes its
    result; sinks that are weights have one number a head."""
    return next(
        (
            name
            for name, each in options.items()
            if isinstance(each, Tensor) and each.is_floating_point() and each.ndim == 4
        ),
        None,
    )


def _do_nothing(*_: object) -> None:
    """Stands in for a check of the library."""


def _register(decoder: TransformersDecoder) -> str:
    """Register this decoder's attention and mask functions with the library; they are removed with the decoder."""
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    name = f"rtlang_paged_{next(_numbers)}"
    owner = weakref.ref(decoder)

    def attend(
        module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: object, **options: Any
    ) -> tuple[Tensor, None]:
        alive = owner()
        assert alive is not None
        return alive._attend(module, query, key, value, attention_mask, options), None

    def describe_mask(*_: Any, local_size: int | None = None, config: Any = None, **__: Any) -> LocalMask | None:
        if local_size is None:
            return None
        is_chunked = "chunked_attention" in (getattr(config, "layer_types", None) or ())
        return LocalMask(local_size, is_chunked and getattr(config, "attention_chunk_size", None) == local_size)

    ALL_ATTENTION_FUNCTIONS.register(name, attend)
    ALL_MASK_ATTENTION_FUNCTIONS.register(name, describe_mask)
    for interface in (ALL_ATTENTION_FUNCTIONS, ALL_MASK_ATTENTION_FUNCTIONS):
        weakref.finalize(decoder, interface._global_mapping.pop, name, None)
    return name
