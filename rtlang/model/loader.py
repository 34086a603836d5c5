"""Loads a model directory or a GGUF file into a decoder.

Safetensors and GGUF files are read: pickles and a checkpoint's own Python can run code and are never loaded. "dummy" weights are seeded
noise in the shapes that config.json implies, for tests and benchmarks. Everything that cannot be loaded raises a `ModelLoadError` that
names the missing or unsupported part. Progress is logged at INFO, with a `fraction` attribute for slow loads.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import safetensors
import torch

from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig
from rtlang.contract.errors import ConfigError, ModelLoadError
from rtlang.contract.graph.template_options import template_settings
from rtlang.model import system_resources
from rtlang.model.decoders.native_decoder import Decoder, NativeDecoder, native_bytes
from rtlang.model.decoders.transformers_decoder import TransformersDecoder
from rtlang.model.decoders.transformers_loading import refuse_known, transformers_bytes
from rtlang.model.gpu.accelerator import Accelerator
from rtlang.model.layers.checkpoint_source import CheckpointSource, DummySource, held_bytes
from rtlang.model.layers.weight_source import CheckpointWeights
from rtlang.model.loading.checkpoint_files import names_in, weight_files
from rtlang.model.loading.gguf.model_files import gguf_config, gguf_in, gguf_tokenizer, gguf_weights, is_gguf
from rtlang.model.loading.gguf.weights import GgufWeights
from rtlang.model.loading.hub import download_weights, hub_directory, hub_file
from rtlang.model.loading.model_config import ModelConfig
from rtlang.model.loading.model_names import HubName, path_obstacle
from rtlang.model.loading.published import read_config
from rtlang.model.loading.quantized.schemes import least_bits, noise_format, quantization_obstacle
from rtlang.model.loading.safetensors_weights import SafetensorsWeights
from rtlang.model.parallel.group import RankGroup
from rtlang.model.parallel.weight_parts import part_of
from rtlang.model.text.tokenizer import Tokenizer
from rtlang_kernels.contract.low_bit import LinearInputs, ScaleType, takes_float8_inputs
from rtlang_kernels.planning.tile_sizes import float8_product_obstacle

logger = logging.getLogger(__name__)

_LONG_BYTES = 256 << 20  # smaller weights load within a second
_PROGRESS_STEP = 0.05
_KINDS = {torch.bfloat16: "BF16", torch.float16: "F16", torch.float32: "F32"}


def load_model(
    config: RuntimeConfig, accelerator: Accelerator | None = None, group: RankGroup | None = None
) -> tuple[Decoder, ModelConfig, Tokenizer]:
    """Load the model of `config`, onto the accelerator if one is given.

    Args:
        group: the ranks that compute the model together; this one loads its part.
    Returns:
        The decoder, the configuration of the whole model, and the tokenizer.
    Raises:
        ModelLoadError: the directory, its config, weights or tokenizer are missing, damaged, unsupported or too large.
        ConfigError: decoder="native" for a model that the native decoder does not compute exactly, deterministic=True for one whose
            bits depend on the other tokens of a step, tensor_parallel for one that cannot be divided, or linear_inputs="float8" where the
            device or the weights do not allow it.
    """
    if group is not None:
        check_ranks(config)
    directory = model_directory(config.model)
    model_config = ModelConfig.from_pretrained(directory)
    obstacle = _native_obstacle(config, model_config)
    if config.decoder == "native" and obstacle is not None:
        raise ConfigError("decoder", "native", f"expected auto or transformers for this model: {obstacle}")
    dtype = pick_dtype(config.dtype, config.device)
    device = torch.device("cpu") if accelerator is None else accelerator.device
    tokenizer = load_tokenizer(directory)
    tokenizer.chat = tokenizer.chat.with_settings(None, template_settings(config).text)
    is_native = _is_native(config, model_config)
    if config.deterministic and accelerator is not None and not is_native:
        reason = obstacle or "decoder='transformers' has torch's kernels"
        raise ConfigError("deterministic", True, f"expected False for this model on a GPU, or device cpu: {reason}")
    _refuse_unsupported(config, directory, model_config)
    is_dummy = config.weights == "dummy"
    files = [] if is_dummy else _fetched_weights(config, directory, model_config)
    weights: CheckpointWeights | None = None
    if not is_dummy:
        weights, files = _opened(config, directory, model_config, files)
    needed = _weight_bytes(config, directory, model_config, weights, 1 if group is None else group.size)
    if group is not None and group.is_first and accelerator is None:
        needed *= group.size  # in the same memory
    if group is not None and accelerator is None and not is_native and not _are_mapped(directory, files, dtype):
        # ranks load the whole model, one after another
        needed += transformers_bytes(directory, dtype) if weights is None else _float_bytes(weights, dtype)
    free = system_resources.free_bytes() if accelerator is None else accelerator.free_bytes()
    if needed > free:
        raise ModelLoadError(str(directory), _shortage(needed, free))
    summary = f"{system_resources.show_bytes(needed)} of weights, {system_resources.show_bytes(free)} of memory free"
    logger.info("loading %s as %s: %s", directory, dtype, summary)
    if model_config.is_multimodal:
        logger.warning(
            "%s: only the text of %s is served; images and audio are not supported yet",
            directory,
            model_config.architecture,
        )
    total = needed if weights is None or not is_native else sum(map(weights.num_bytes, weights.names()))
    progress = _Progress(total, summary)
    decoder: Decoder
    inputs = LinearInputs(config.linear_inputs)
    if inputs is LinearInputs.FLOAT8:
        if group is not None and not is_native:
            raise ConfigError("linear_inputs", "float8", "expected float: ranks of this model have float weights")
        obstacle = float8_product_obstacle(device)
        if obstacle is not None:
            raise ConfigError("linear_inputs", "float8", f"expected float on this device: {obstacle}")
        logger.info("linear inputs: %s", _float8_share(weights, model_config))
    if (
        is_dummy
        and model_config.quantization is not None
        and not (is_native and noise_format(model_config.quantization))
    ):
        logger.warning("%s: dummy weights of this format are floats", directory)
    if is_native:
        source = (
            DummySource(config.weights_seed, dtype, device, noise_format(model_config.quantization))
            if weights is None
            else CheckpointSource(
                weights,
                directory,
                dtype,
                progress,
                device,
                files=files,
            )
        )
        load = partial(NativeDecoder.load, inputs=inputs, has_fixed_order=config.deterministic)
        decoder = load(model_config, source, dtype, group)
        if group is None or group.is_first:
            source.check_unused(model_config)
    else:
        decoder = TransformersDecoder.load(
            directory,
            dtype,
            weights=weights if _may_have_codes(model_config, weights) else None,
            inputs=inputs,
            dummy_seed=config.weights_seed if is_dummy else None,
            on_progress=progress.report,
            device=device,
            is_deterministic=config.deterministic,
            group=group,
        )
    if config.deterministic and not decoder.is_row_invariant:
        raise ConfigError(
            "deterministic", True, f"expected False: the bits of kernels for {dtype} on this machine depend on the step"
        )
    logger.info("loaded %s as %s with the %s decoder", directory, dtype, "native" if is_native else "transformers")
    return decoder, model_config, tokenizer


def open_checkpoint(
    config: RuntimeConfig, directory: Path, quantization: object = None
) -> tuple[CheckpointWeights, list[Path]]:
    """All weights of a safetensors checkpoint, under the names that they have there, and its files; those on a hub are downloaded.

    Args:
        directory: of `config.model`.
        quantization: its supported `quantization_config`; None if there is none.
    Raises:
        ModelLoadError: weights are missing or damaged.
    """
    name = HubName.parse(config.model)
    if name is not None:
        download_weights(name, directory)
    files = weight_files(directory)
    return SafetensorsWeights(directory, files, quantization), files


def check_ranks(config: RuntimeConfig) -> None:
    """Check, before processes are started, that the model can be divided among `config.tensor_parallel` of them.

    Raises:
        ModelLoadError: config.json is missing or damaged, or transformers cannot construct the model.
        ConfigError: the model cannot be divided.
    """
    if config.tensor_parallel == 1:
        return
    model_config = ModelConfig.from_pretrained(model_directory(config.model))
    if _is_native(config, model_config):
        part_of(model_config, config.tensor_parallel)
    else:
        transformers_bytes(model_directory(config.model), pick_dtype(config.dtype), config.tensor_parallel)
    if config.device == "cuda" and torch.cuda.device_count() < config.tensor_parallel:
        raise ConfigError("tensor_parallel", config.tensor_parallel, f"torch finds {torch.cuda.device_count()} GPUs")


def float8_share(config: RuntimeConfig) -> str:
    """How many matrices of `config.model` have float8 inputs with linear_inputs="float8", in words.

    Raises:
        ConfigError: none has.
        ModelLoadError: the config or weights are missing or damaged, or the model is not supported.
    """
    directory = model_directory(config.model)
    model_config = ModelConfig.from_pretrained(directory)
    if config.weights == "dummy":
        return _float8_share(None, model_config)
    weights, _ = _opened(config, directory, model_config, _fetched_weights(config, directory, model_config))
    return _float8_share(weights, model_config)


def _float8_share(weights: CheckpointWeights | None, model_config: ModelConfig) -> str:
    if weights is None:
        fmt = noise_format(model_config.quantization)
        if fmt is not None and fmt.is_float8 and fmt.scales is ScaleType.NONE:
            return "float8 for the projections, which are noise"
    found = [] if weights is None else [weights.low_bit(name) for name in weights.names() if ".experts" not in name]
    few_bits = [weight for weight in found if weight is not None]
    num_fitting = sum(map(takes_float8_inputs, few_bits))
    if not num_fitting:
        raise ConfigError(
            "linear_inputs",
            "float8",
            "expected int8 or float: no layer of this model has float8 weights with one scale per output or tensor",
        )
    left = (
        "" if num_fitting == len(few_bits) else "; the others, whose scales are of groups or blocks, have float inputs"
    )
    return f"float8 for {num_fitting} of {len(few_bits)} matrices of few bits outside of experts{left}"


def weight_bytes(config: RuntimeConfig) -> int:
    """Minimum memory in bytes of the loaded weights of `config.model`.

    Raises:
        ModelLoadError: the config or weights are missing or damaged, or the model is not supported.
    """
    directory = model_directory(config.model)
    model_config = ModelConfig.from_pretrained(directory)
    _refuse_unsupported(config, directory, model_config)
    files = [] if config.weights == "dummy" else _fetched_weights(config, directory, model_config)
    weights = None if config.weights == "dummy" else _opened(config, directory, model_config, files)[0]
    return _weight_bytes(config, directory, model_config, weights)


def _is_native(config: RuntimeConfig, model_config: ModelConfig) -> bool:
    """Whether the native decoder computes the model."""
    return config.decoder != "transformers" and _native_obstacle(config, model_config) is None


def _native_obstacle(config: RuntimeConfig, model_config: ModelConfig) -> str | None:
    """Why the native decoder cannot compute the model with these settings, or None."""
    native = model_config.native
    if native is None:
        return model_config.native_obstacle
    if native.has_experts and config.tensor_parallel > 1:
        return "its experts are for one process"
    if native.deltas and (config.device != "cpu" or config.tensor_parallel > 1):
        return "its recurrent layers are for one process on a CPU"
    if config.tensor_parallel > 1 and not native.is_divisible:
        return "ranks cannot divide a norm of all heads together"
    return None


def _refuse_unsupported(config: RuntimeConfig, directory: Path, model_config: ModelConfig) -> None:
    """Refuse a model by its configuration, before weights are downloaded; see `refuse_known` for the transformers decoder."""
    obstacle = quantization_obstacle(model_config.quantization)
    if obstacle is not None:
        raise ModelLoadError(str(directory), obstacle)
    native = model_config.native
    if not _is_native(config, model_config) or (native is not None and native.depends_on_length):
        longest = config.max_model_len or model_config.max_position_embeddings
        refuse_known(read_config(directory), str(directory), longest)


def _opened(
    config: RuntimeConfig, directory: Path, model_config: ModelConfig, files: list[Path]
) -> tuple[CheckpointWeights, list[Path]]:
    """The weights of a checkpoint by the names that its decoder expects, and the files that have them.

    Args:
        files: its safetensors.
    """
    if is_gguf(directory):
        return gguf_weights(directory)
    is_text = model_config.is_multimodal and _is_native(config, model_config)
    return SafetensorsWeights(directory, files, model_config.quantization, is_multimodal=is_text), files


def _are_mapped(directory: Path, files: Iterable[Path], dtype: torch.dtype) -> bool:
    """See `are_mapped`; of a GGUF file, no rank loads the whole model."""
    return is_gguf(directory) or are_mapped(files, dtype)


def _may_have_codes(model_config: ModelConfig, weights: CheckpointWeights | None) -> bool:
    """Whether weights may be stored in few bits."""
    return model_config.quantization is not None or isinstance(weights, GgufWeights)


def _weight_bytes(
    config: RuntimeConfig,
    directory: Path,
    model_config: ModelConfig,
    weights: CheckpointWeights | None,
    num_ranks: int = 1,
) -> int:
    """Bytes of the weights of one of `num_ranks` ranks; `weights` is None for noise."""
    dtype = pick_dtype(config.dtype, config.device)
    if _is_native(config, model_config):
        needed = native_bytes(part_of(model_config, num_ranks), dtype)
        if weights is None and noise_format(model_config.quantization) is not None:
            return int(needed * min(1.0, least_bits(model_config.quantization) / (8 * dtype.itemsize)))
        if weights is None or not _may_have_codes(model_config, weights):
            return needed
        return int(needed * min(1.0, held_bytes(weights, dtype) / native_bytes(model_config, dtype)))
    held: int | None = None
    if weights is not None and num_ranks == 1:  # ranks multiply codes out
        has_codes = _may_have_codes(model_config, weights)
        held = held_bytes(weights, dtype) if has_codes else _float_bytes(weights, dtype)
    if held is not None and not model_config.is_multimodal:
        return held
    # Files of a multimodal model hold more than its text half.
    whole = transformers_bytes(directory, dtype, num_ranks)
    return whole if held is None else min(whole, held)


def _float_bytes(weights: CheckpointWeights, dtype: torch.dtype) -> int:
    """Bytes of all weights of a checkpoint as floats."""
    return sum(math.prod(weights.shape(name)) for name in weights.names()) * dtype.itemsize


def _fetched_weights(config: RuntimeConfig, directory: Path, model_config: ModelConfig) -> list[Path]:
    """The safetensors files of a checkpoint. Files on a hub are downloaded, if there is memory for the weights."""
    if is_gguf(directory):
        return []
    name = HubName.parse(config.model)
    if name is not None:
        dtype = pick_dtype(config.dtype, config.device)
        if _is_native(config, model_config):
            needed = native_bytes(part_of(model_config, config.tensor_parallel), dtype)
            needed = int(needed * min(1.0, least_bits(model_config.quantization) / (8 * dtype.itemsize)))
        else:
            needed = transformers_bytes(directory, dtype, config.tensor_parallel)
        free = system_resources.free_bytes()
        if config.device == "cpu" and needed > free:
            raise ModelLoadError(config.model, _shortage(needed, free))
        download_weights(name, directory)
    return weight_files(directory)


def _shortage(needed: int, free: int) -> str:
    shown = system_resources.show_bytes
    return f"the weights need {shown(needed)} of memory, but only {shown(free)} is free"


class _Progress:
    """Logs loading progress of large weights. Owned by one `load_model` call."""

    def __init__(self, total_bytes: int, summary: str) -> None:
        self._total, self._summary, self._done, self._shown = total_bytes, summary, 0, 0.0

    def add(self, num_bytes: int) -> None:
        """Account for `num_bytes` more bytes of weights."""
        self._done += num_bytes
        self.report(self._done / self._total)

    def report(self, fraction: float) -> None:
        """Log that `fraction` of the weights (0 to 1) has been read."""
        fraction = min(fraction, 1.0)
        if self._total >= _LONG_BYTES and fraction >= self._shown + _PROGRESS_STEP:
            self._shown = fraction
            logger.info("%d%% loaded: %s", round(100 * fraction), self._summary, extra={"fraction": fraction})


def model_directory(model: str) -> Path:
    """The directory of `RuntimeConfig.model`, or its GGUF file.

    Of a model on a hub, GGUF files or else files other than weights are downloaded unless they are in the cache.

    Raises:
        ModelLoadError: `model` is no directory or GGUF file, a directory with several GGUF models, or on a hub from which it cannot be
            downloaded; explains a misspelled or mistaken name.
    """
    if model == EMBEDDED_MODEL:
        return Path(str(resources.files("rtlang.tiny")))
    try:
        if (name := HubName.parse(model)) is not None:
            return hub_directory(name) if name.file is None else hub_file(name)
        directory = Path(model).expanduser()
        if is_gguf(directory):
            return directory
        if directory.is_dir():
            return gguf_in(directory, names_in(directory)) or directory
        raise ModelLoadError(model, path_obstacle(model))
    except (
        RuntimeError,
        OSError,
        ValueError,
    ) as error:  # "~" of an unknown user, a name that is too long or has a null
        raise ModelLoadError(model, f"no such directory: {error}") from None


def load_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer of a model directory or of a GGUF file; tokenizer.json beside the file replaces the one in its metadata.

    Raises:
        ModelLoadError: it is missing, damaged, or cannot be used incrementally.
    """
    if not is_gguf(path):
        return Tokenizer.from_pretrained(path)
    entries = gguf_config(path)
    ends = entries["eos_token_id"]
    eos_token_ids = ends if isinstance(ends, list) else [ends] if ends is not None else []
    names = names_in(path.parent)
    if "tokenizer.json" in names:
        settings = None if "tokenizer_config.json" in names else _gguf_settings(path)
        return Tokenizer.from_pretrained(
            path.parent, settings=settings, eos_token_ids=eos_token_ids, num_logits=entries["vocab_size"]
        )
    parts = gguf_tokenizer(path)
    return Tokenizer.from_parts(
        parts.content,
        parts.settings,
        source=str(path),
        part="metadata",
        eos_token_ids=parts.eos_token_ids,
        num_logits=entries["vocab_size"],
    )


def _gguf_settings(path: Path) -> dict[str, Any] | None:
    """The content of tokenizer_config.json for a GGUF file; None if its metadata describe no tokenizer that is supported."""
    try:
        return gguf_tokenizer(path).settings
    except ModelLoadError as error:
        logger.warning("%s", error)
        return None


def pick_dtype(name: str, device: str = "cpu") -> torch.dtype:
    """The torch dtype for `RuntimeConfig.dtype` and `.device`; "auto" is bfloat16 if the hardware multiplies it natively, else float32."""
    if name == "auto":
        return torch.bfloat16 if device == "cuda" or (device == "cpu" and _has_native_bfloat16()) else torch.float32
    return {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}[name]


def are_mapped(files: Iterable[Path], dtype: torch.dtype) -> bool:
    """Whether the weights of a model of transformers stay in its files until they are used, because all of them have its dtype.

    Experts that the library puts together are copied nevertheless; they are not looked for.
    """
    kinds: set[str] = set()
    for path in files:
        with safetensors.safe_open(str(path), framework="pt") as reader:
            kinds.update(reader.get_slice(name).get_dtype() for name in reader.keys())  # noqa: SIM118 - not a mapping
    return kinds == {_KINDS[dtype]}


def _has_native_bfloat16() -> bool:
    checks = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    return any(getattr(torch.cpu, name, lambda: False)() for name in checks)
