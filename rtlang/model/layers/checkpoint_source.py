"""Sources of weights for the native decoder: a checkpoint in any file format, and seeded noise."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from rtlang.cache.system_memory import release_files, trim_heap
from rtlang.contract.errors import ModelLoadError
from rtlang.model.layers.noise_weight import NoisePool
from rtlang.model.layers.weight_source import CheckpointWeights
from rtlang.model.loading.model_config import ModelConfig
from rtlang.model.loading.safetensors_weights import is_beside_a_weight
from rtlang_kernels.contract.low_bit import LowBitWeight, WeightFormat

logger = logging.getLogger(__name__)

_MAPPED_BYTES = 64 << 20  # of weights, which stay in memory after they are read until the next ones are
_DUMMY_RANGE = 0.02 * 3**0.5  # uniform with standard deviation 0.02
_PROJECTION = re.compile(r"\.layers\..*(_proj|\.w[123])\.weight$")
_IGNORED = re.compile(r"\.rotary_emb\.inv_freq$")


class Progress(Protocol):
    """Receives the progress of loading."""

    def add(self, num_bytes: int) -> None:
        """Account for `num_bytes` more bytes of files."""


class CheckpointSource:
    """The weights of a checkpoint, read and converted one at a time; implements `WeightSource`.

    Args:
        weights: the checkpoint.
        directory: its path, for errors.
        dtype: of the floats handed out.
        progress: is told the bytes read.
        device: where floats are handed out; codes stay on the CPU. Default: the CPU.
        files: the mapped files, whose memory is given back now and then.
    """

    def __init__(
        self,
        weights: CheckpointWeights,
        directory: Path,
        dtype: torch.dtype,
        progress: Progress | None = None,
        device: torch.device | None = None,
        *,
        files: Iterable[Path] = (),
    ) -> None:
        self._weights, self._directory, self._dtype = weights, directory, dtype
        self._progress, self._device = progress, device
        self._files, self._num_mapped = tuple(files), 0
        self._names, self._used = weights.names(), set[str]()

    def has(self, name: str) -> bool:
        """See `WeightSource`."""
        return name in self._names

    def low_bit(self, name: str, shape: tuple[int, ...]) -> LowBitWeight | None:
        """See `WeightSource`."""
        self._check(name, shape)
        found = self._weights.low_bit(name)
        if found is not None:
            self._account(name)
        return found

    def tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """See `WeightSource`."""
        self._check(name, shape)
        self._account(name)
        return self._weights.tensor(name, self._dtype).to(self._device)

    def check_unused(self, config: ModelConfig) -> None:
        """Refuse a checkpoint with unused tensors in the model's layers: its architecture differs from its config.

        Raises:
            ModelLoadError: names one unused tensor.
        """
        left = sorted(name for name in self._names if name not in self._used and not _IGNORED.search(name))
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

    def _check(self, name: str, shape: tuple[int, ...]) -> None:
        if name not in self._names:
            raise ModelLoadError(str(self._directory), f"the weights do not contain tensor {name}")
        found = self._weights.shape(name)
        if found != shape:
            raise ModelLoadError(
                str(self._directory), f"tensor {name} has shape {list(found)}, but config.json implies {list(shape)}"
            )

    def _account(self, name: str) -> None:
        """Count a weight as used, and drop the memory of those read before, now and then: they are packed or copied by now, and the files
        keep them otherwise."""
        num_bytes = self._weights.num_bytes(name)
        if self._progress is not None and name not in self._used:
            self._progress.add(num_bytes)
        self._used.add(name)
        if self._num_mapped >= _MAPPED_BYTES:
            release_files(self._files)
            trim_heap()  # of converted and joined tensors, which are packed by now
            self._num_mapped = 0
        self._num_mapped += num_bytes


class DummySource:
    """Seeded noise in any shape. Norm weights are one, so that activations keep their size."""

    def __init__(
        self,
        seed: int,
        dtype: torch.dtype,
        device: torch.device | None = None,
        few_bits: WeightFormat | None = None,
    ) -> None:
        """Create a source of noise generated on `device`; a CPU and a GPU generate different noise from the same seed.

        Args:
            few_bits: the format of projections in layers; default: they are floats.
        """
        self._pool = None if few_bits is None else NoisePool(few_bits, seed)
        self._dtype, self._device = dtype, device or torch.device("cpu")
        self._generator = torch.Generator(self._device).manual_seed(seed)

    def tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """See `WeightSource`."""
        if len(shape) == 1 and name.endswith("norm.weight"):
            return torch.ones(shape, dtype=self._dtype, device=self._device)
        # uniform, since torch draws it 2 to 5 times as fast as normal noise
        noise = torch.empty(shape, dtype=self._dtype, device=self._device)
        return noise.uniform_(-_DUMMY_RANGE, _DUMMY_RANGE, generator=self._generator)

    def low_bit(self, name: str, shape: tuple[int, ...]) -> LowBitWeight | None:
        """See `WeightSource`: noise in the format of few bits, if there is one."""
        if self._pool is None or len(shape) != 2 or not _PROJECTION.search(name):
            return None
        return self._pool.weight(name, (shape[0], shape[1]))

    def has(self, name: str) -> bool:
        """See `WeightSource`; always False, so no optional tensors are used."""
        return False

    def check_unused(self, config: ModelConfig) -> None:
        """Do nothing: noise has no unused tensors."""


def held_bytes(weights: CheckpointWeights, dtype: torch.dtype) -> int:
    """Bytes of all weights of a checkpoint in memory: codes as in the file where layers compute with them, else floats of `dtype`."""
    total = 0
    for name in weights.names():
        if weights.low_bit(name) is None:
            total += math.prod(weights.shape(name)) * dtype.itemsize
        else:
            total += weights.num_bytes(name)
    return total
