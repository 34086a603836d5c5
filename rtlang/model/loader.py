"""Loads a model directory into a decoder.

Only safetensors are read: pickles and a checkpoint's own Python can run code and are never loaded. "dummy" weights are seeded noise in
the shapes that config.json implies, for tests and benchmarks. Everything that cannot be loaded raises a `ModelLoadError` that names the
missing or unsupported part. Progress is logged at INFO, with a `fraction` attribute for slow loads.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any

import safetensors
import torch
from torch import Tensor

from rtlang.cache.system_memory import release_files, trim_heap
from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig
from rtlang.contract.errors import ConfigError, ModelLoadError
from rtlang.contract.graph.template_options import template_settings
from rtlang.model import system_resources
from rtlang.model.decoders.native_decoder import Decoder, NativeDecoder, native_bytes
from rtlang.model.decoders.transformers_decoder import TransformersDecoder
from rtlang.model.decoders.transformers_loading import refuse_known, transformers_bytes
from rtlang.model.gpu.accelerator import Accelerator
from rtlang.model.loading.checkpoint_files import weight_files
from rtlang.model.loading.hub import download_weights, hub_directory
from rtlang.model.loading.model_config import ModelConfig
from rtlang.model.loading.model_names import HubName, path_obstacle
from rtlang.model.loading.published import read_config, text_readers
from rtlang.model.loading.quantized import ADVICE, SCALE_SUFFIX, float_tensor, int8_tensor, is_beside_a_weight
from rtlang.model.parallel.group import RankGroup
from rtlang.model.parallel.weight_parts import part_of
from rtlang.model.text.tokenizer import Tokenizer
from rtlang_kernels.contract.low_bit import LowBitWeight

logger = logging.getLogger(__name__)

_LONG_BYTES = 256 << 20  # smaller weights load within a second
_PROGRESS_STEP = 0.05
_MAPPED_BYTES = 64 << 20  # of weights, which stay in memory after they are read until the next ones are
_DUMMY_RANGE = 0.02 * 3**0.5  # uniform with standard deviation 0.02
_KINDS = {torch.bfloat16: "BF16", torch.float16: "F16", torch.float32: "F32"}
_IGNORED = re.compile(r"\.rotary_emb\.inv_freq$")


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
            bits depend on the other tokens of a step, or tensor_parallel for one that cannot be divided.
    """
    if group is not None:
        check_ranks(config)
    directory = model_directory(config.model)
    model_config = ModelConfig.from_pretrained(directory)
    if config.decoder == "native" and model_config.native is None:
        raise ConfigError(
            "decoder", "native", f"expected auto or transformers for this model: {model_config.native_obstacle}"
        )
    dtype = pick_dtype(config.dtype, config.device)
    device = torch.device("cpu") if accelerator is None else accelerator.device
    tokenizer = Tokenizer.from_pretrained(directory)
    tokenizer.chat = tokenizer.chat.with_settings(None, template_settings(config).text)
    is_native = _is_native(config, model_config)
    _refuse_unsupported(config, directory, model_config)
    is_dummy = config.weights == "dummy"
    files = [] if is_dummy else _fetched_weights(config, directory, model_config)
    needed = _weight_bytes(config, directory, model_config, files, 1 if group is None else group.size)
    if group is not None and group.is_first and accelerator is None:
        needed *= group.size  # in the same memory
    if group is not None and accelerator is None and not is_native and not are_mapped(files, dtype):
        needed += _weight_bytes(config, directory, model_config, files)  # ranks load the whole model, one after another
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
    progress = _Progress(needed, summary)
    decoder: Decoder
    if is_native:
        source = (
            DummySource(config.weights_seed, dtype, device)
            if is_dummy
            else SafetensorsSource(
                directory,
                files,
                dtype,
                progress,
                device,
                is_quantized=model_config.is_quantized,
                quantizes_inputs=model_config.quantizes_inputs,
                is_multimodal=model_config.is_multimodal,
            )
        )
        decoder = NativeDecoder.load(model_config, source, dtype, group)
        if group is None or group.is_first:
            source.check_unused(model_config)
    else:
        decoder = TransformersDecoder.load(
            directory,
            files,
            dtype,
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


def weight_bytes(config: RuntimeConfig) -> int:
    """Minimum memory in bytes of the loaded weights of `config.model`.

    Raises:
        ModelLoadError: the config or weights are missing or damaged, or the model is not supported.
    """
    directory = model_directory(config.model)
    model_config = ModelConfig.from_pretrained(directory)
    _refuse_unsupported(config, directory, model_config)
    files = [] if config.weights == "dummy" else _fetched_weights(config, directory, model_config)
    return _weight_bytes(config, directory, model_config, files)


def _is_native(config: RuntimeConfig, model_config: ModelConfig) -> bool:
    """Whether the native decoder computes the model."""
    return model_config.native is not None and config.decoder != "transformers"


def _refuse_unsupported(config: RuntimeConfig, directory: Path, model_config: ModelConfig) -> None:
    """Refuse a model of the transformers decoder by its configuration, before weights are downloaded; see `refuse_known`."""
    if not _is_native(config, model_config):
        longest = config.max_model_len or model_config.max_position_embeddings
        refuse_known(read_config(directory), str(directory), longest)


def _weight_bytes(
    config: RuntimeConfig, directory: Path, model_config: ModelConfig, files: Iterable[Path], num_ranks: int = 1
) -> int:
    """Bytes of the weights of one of `num_ranks` ranks."""
    dtype = pick_dtype(config.dtype, config.device)
    if _is_native(config, model_config):
        return native_bytes(part_of(model_config, num_ranks), dtype)
    # Files of a multimodal model hold more than its text half.
    if config.weights == "dummy" or num_ranks > 1 or model_config.is_multimodal:
        return transformers_bytes(directory, dtype, num_ranks)
    return checkpoint_bytes(files, dtype, is_quantized=model_config.is_quantized)


def _fetched_weights(config: RuntimeConfig, directory: Path, model_config: ModelConfig) -> list[Path]:
    """The weight files of a checkpoint. Files on a hub are downloaded, if there is memory for the weights."""
    name = HubName.parse(config.model)
    if name is not None:
        dtype = pick_dtype(config.dtype, config.device)
        if _is_native(config, model_config):
            needed = native_bytes(part_of(model_config, config.tensor_parallel), dtype)
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
    """The directory of `RuntimeConfig.model`. Of a model on a hub, files other than weights are downloaded unless they are in the cache.

    Raises:
        ModelLoadError: `model` is no directory, or on a hub from which it cannot be downloaded; explains a misspelled or mistaken name.
    """
    if model == EMBEDDED_MODEL:
        return Path(str(resources.files("rtlang.tiny")))
    try:
        if (name := HubName.parse(model)) is not None:
            return hub_directory(name)
        directory = Path(model).expanduser()
        if directory.is_dir():
            return directory
        raise ModelLoadError(model, path_obstacle(model))
    except (
        RuntimeError,
        OSError,
        ValueError,
    ) as error:  # "~" of an unknown user, a name that is too long or has a null
        raise ModelLoadError(model, f"no such directory: {error}") from None


def pick_dtype(name: str, device: str = "cpu") -> torch.dtype:
    """The torch dtype for `RuntimeConfig.dtype` and `.device`; "auto" is bfloat16 if the hardware multiplies it natively, else float32."""
    if name == "auto":
        return torch.bfloat16 if device == "cuda" or (device == "cpu" and _has_native_bfloat16()) else torch.float32
    return {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}[name]


class SafetensorsSource:
    """Tensors of a checkpoint, read and converted one at a time."""

    def __init__(
        self,
        directory: Path,
        files: Iterable[Path],
        dtype: torch.dtype,
        progress: _Progress | None = None,
        device: torch.device | None = None,
        *,
        is_quantized: bool = False,
        quantizes_inputs: bool = False,
        is_multimodal: bool = False,
    ) -> None:
        """Open the files. Raises ModelLoadError if one is not a readable safetensors file.

        Args:
            is_quantized: whether int8 weights with scales are dequantized; otherwise they are refused.
            quantizes_inputs: whether `int8` hands them out as they are.
            is_multimodal: read only the text half, under the names that a model of text alone has.
        """
        self._directory, self._dtype, self._progress, self._device = directory, dtype, progress, device
        self._is_quantized, self._quantizes_inputs = is_quantized, quantizes_inputs
        self._reader_of: dict[str, Any] = {}
        self._used: set[str] = set()
        self._files, self._num_mapped = tuple(files), 0
        for path in self._files:
            try:
                reader: Any = safetensors.safe_open(str(path), framework="pt")
            except (safetensors.SafetensorError, OSError) as error:
                raise ModelLoadError(
                    str(directory), f"{path.name} is not a readable safetensors file: {error}"
                ) from None
            self._reader_of.update(text_readers(reader) if is_multimodal else dict.fromkeys(reader.keys(), reader))

    def has(self, name: str) -> bool:
        """See `WeightSource`."""
        return name in self._reader_of

    def int8(self, name: str, shape: tuple[int, ...]) -> tuple[Tensor, Tensor] | None:
        """See `WeightSource`."""
        reader, scale_reader = self._reader_of.get(name), self._reader_of.get(name + SCALE_SUFFIX)
        if not self._quantizes_inputs or reader is None or tuple(reader.get_slice(name).get_shape()) != shape:
            return None
        self._release(math.prod(shape))
        try:
            found = int8_tensor(reader, name, scale_reader)
        except safetensors.SafetensorError:
            return None  # `tensor` says what is wrong
        if found is not None:
            self._used.update((name, name + SCALE_SUFFIX))
            if self._progress is not None:
                self._progress.add(found[0].numel() * self._dtype.itemsize)
        return found

    def low_bit(self, name: str, shape: tuple[int, ...]) -> LowBitWeight | None:
        """See `WeightSource`."""
        return None

    def tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """See `WeightSource`."""
        reader = self._reader_of.get(name)
        if reader is None:
            raise ModelLoadError(str(self._directory), f"the weights do not contain tensor {name}")
        found = tuple(reader.get_slice(name).get_shape())
        if found != shape:
            raise ModelLoadError(
                str(self._directory), f"tensor {name} has shape {list(found)}, but config.json implies {list(shape)}"
            )
        self._release(math.prod(shape) * self._dtype.itemsize)
        self._used.add(name)
        scale_reader = self._reader_of.get(name + SCALE_SUFFIX) if self._is_quantized else None
        if scale_reader is not None:
            self._used.add(name + SCALE_SUFFIX)
        try:
            tensor = float_tensor(reader, name, self._dtype, scale_reader).to(self._device)
        except ValueError as error:  # a number format that torch lacks or that is not a weight format
            raise ModelLoadError(str(self._directory), f"tensor {name} {error}") from None
        if self._progress is not None:
            self._progress.add(tensor.nbytes)
        return tensor

    def _release(self, num_bytes: int) -> None:
        """Drop the memory of tensors read before, now and then: they are packed or copied by now, and the files keep them otherwise.

        Args:
            num_bytes: of the tensor that is read next.
        """
        if self._num_mapped >= _MAPPED_BYTES:
            release_files(self._files)
            trim_heap()  # of converted and joined tensors, which are packed by now
            self._num_mapped = 0
        self._num_mapped += num_bytes

    def check_unused(self, config: ModelConfig) -> None:
        """Refuse a checkpoint with unused tensors in the model's layers: its architecture differs from its config.

        Raises:
            ModelLoadError: names one unused tensor.
        """
        left = sorted(name for name in self._reader_of if name not in self._used and not _IGNORED.search(name))
        layers = tuple(f"model.layers.{layer}." for layer in range(config.num_layers))
        for name in left:
            if is_beside_a_weight(name):
                raise ModelLoadError(
                    str(self._directory), f"tensor {name} is unexpected: config.json does not describe its use"
                )
            if name.startswith(layers):
                raise ModelLoadError(
                    str(self._directory),
                    f"tensor {name} is unexpected in a {config.model_type} model; decoder='transformers' may support it",
                )
        if left:
            logger.warning("%d tensors of %s are not used, %s among them", len(left), self._directory, left[0])


class DummySource:
    """Seeded noise in any shape. Norm weights are one, so that activations keep their size."""

    def __init__(self, seed: int, dtype: torch.dtype, device: torch.device | None = None) -> None:
        """Create a source of noise generated on `device`; a CPU and a GPU generate different noise from the same seed."""
        self._dtype, self._device = dtype, device or torch.device("cpu")
        self._generator = torch.Generator(self._device).manual_seed(seed)

    def tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """See `WeightSource`."""
        if len(shape) == 1 and name.endswith("norm.weight"):
            return torch.ones(shape, dtype=self._dtype, device=self._device)
        # uniform, since torch draws it 2 to 5 times as fast as normal noise
        noise = torch.empty(shape, dtype=self._dtype, device=self._device)
        return noise.uniform_(-_DUMMY_RANGE, _DUMMY_RANGE, generator=self._generator)

    def int8(self, name: str, shape: tuple[int, ...]) -> tuple[Tensor, Tensor] | None:
        """See `WeightSource`; always None."""
        return None

    def low_bit(self, name: str, shape: tuple[int, ...]) -> LowBitWeight | None:
        """See `WeightSource`; always None."""
        return None

    def has(self, name: str) -> bool:
        """See `WeightSource`; always False, so no optional tensors are used."""
        return False

    def check_unused(self, config: ModelConfig) -> None:
        """Do nothing: noise has no unused tensors."""


def checkpoint_bytes(files: Iterable[Path], dtype: torch.dtype, *, is_quantized: bool = False) -> int:
    """Bytes of all tensors in the files after conversion to `dtype`.

    Args:
        is_quantized: whether weights may be int8 with scales, which may be in any of the files.
    Raises:
        ModelLoadError: a file cannot be read, or a weight has an unsupported dtype; names it.
    """
    found: dict[str, tuple[Path, str, int]] = {}  # by name: directory, dtype, number of elements
    for path in files:
        try:
            opened: Any = safetensors.safe_open(str(path), framework="pt")
            with opened as reader:
                for name in reader.keys():  # noqa: SIM118 - the reader is not a mapping
                    tensor = reader.get_slice(name)
                    found[name] = path.parent, tensor.get_dtype(), math.prod(tensor.get_shape())
        except (safetensors.SafetensorError, OSError) as error:
            raise ModelLoadError(str(path.parent), f"{path.name} is not a readable safetensors file: {error}") from None
    scales = {name + SCALE_SUFFIX for name in found} & found.keys() if is_quantized else set()
    for name, (directory, kind, _) in found.items():
        is_int8 = kind == "I8" and name + SCALE_SUFFIX in scales
        if name.endswith(".weight") and not kind.startswith(("F", "BF")) and not is_int8:
            raise ModelLoadError(
                str(directory), f"tensor {name} is {kind}; only floats and int8 with scales are supported{ADVICE}"
            )
    return sum(count for name, (_, _, count) in found.items() if name not in scales) * dtype.itemsize


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
