"""Memory of a process that loads a model: what stays, and the most it has meanwhile.

A process of its own loads a small model of the same shape first, so that libraries and compiled kernels are not counted, and then one with
84 million weights: in bfloat16 from safetensors, or in 8 bits from a GGUF file.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
import transformers

from rtlang.bench.checkpoint import SHAPES, num_weights, write_config, write_random
from rtlang.contract.config import EMBEDDED_MODEL
from rtlang.model.loader import model_directory
from tests.support.models.gguf_files import random_blocks, write_gguf
from tests.support.models.gguf_models import CASES, gguf_metadata

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")

SHAPE = {
    "vocab_size": 20_000,
    "hidden_size": 768,
    "intermediate_size": 3_072,
    "num_hidden_layers": 8,
    "num_attention_heads": 12,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "tie_word_embeddings": True,
    "use_sliding_window": False,
}
SMALL = {"vocab_size": 2_048, "num_hidden_layers": 1}
MIB = 1 << 20
SCRIPT = """
import gc, json, sys
from pathlib import Path
from rtlang.cache.system_memory import trim_heap
from rtlang.contract.config import RuntimeConfig
from rtlang.model.host_runner import HostRunner

def kept(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))

def load(model):
    runner = HostRunner(RuntimeConfig(model=model, decoder=sys.argv[1], dtype=sys.argv[2], num_pages=8, num_threads=1))
    runner.load()
    return runner

if len(sys.argv) > 4:
    load(sys.argv[4]).close()
    gc.collect()
    trim_heap()
try:
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again
    before, has_peak = kept("VmRSS"), True
except OSError:
    before, has_peak = kept("VmRSS"), False
runner = load(sys.argv[3])
print(json.dumps([before, kept("VmRSS"), kept("VmHWM") if has_peak else None]))
"""


def memory_of(decoder: str, dtype: str, *models: Path) -> tuple[int, int, int | None]:
    """Resident bytes before loading the first of `models`, after it, and at most meanwhile; a second one is loaded before."""
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, decoder, dtype, *map(str, models)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr
    before, after, peak = json.loads(done.stdout)
    return before, after, peak


def written(directory: Path, model_type: str, shape: Any) -> Path:
    return write_random(directory, model_directory(EMBEDDED_MODEL), model_type, shape)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("models")
    return written(folder / "large", "qwen2", SHAPE), written(folder / "small", "qwen2", SHAPE | SMALL)


@pytest.mark.parametrize(
    ("decoder", "dtype", "most"),
    [
        ("native", "bfloat16", 1.2),
        pytest.param("native", "float32", 1.2, marks=pytest.mark.long),
        pytest.param("transformers", "bfloat16", 1.2, marks=pytest.mark.slow),
        # transformers converts all weights while the whole file is mapped
        pytest.param("transformers", "float32", 1.5, marks=pytest.mark.long),
    ],
)
def test_a_loaded_model_has_one_copy_of_its_weights(
    decoder: str, dtype: str, most: float, models: tuple[Path, Path]
) -> None:
    before, after, peak = memory_of(decoder, dtype, *models)
    weights = num_weights(models[0]) * (2 if dtype == "bfloat16" else 4)
    assert weights > 150 * MIB
    assert after - before <= 1.05 * weights + 16 * MIB
    assert peak is None or peak - before <= most * weights + 128 * MIB


@pytest.fixture(scope="module")
def gguf_models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("gguf")
    return written_gguf(folder / "large", SHAPE), written_gguf(folder / "small", SHAPE | SMALL)


def written_gguf(directory: Path, shape: Any) -> Path:
    """A GGUF file of random blocks of Q8_0, beside its tokenizer."""
    config = write_config(directory, model_directory(EMBEDDED_MODEL), "qwen2", shape)
    with torch.device("meta"):
        state = dict(transformers.AutoModelForCausalLM.from_config(config).state_dict())
    del state["lm_head.weight"]
    table: Any = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, config.num_hidden_layers)
    tensors: dict[str, Any] = {}
    for name, tensor in state.items():
        known = table.get_name(name, try_suffixes=(".weight", ".bias"))
        is_matrix = tensor.ndim == 2
        tensors[known] = random_blocks("Q8_0", tensor.shape) if is_matrix else np.ones(tensor.shape, np.float32)
    return write_gguf(directory / "model.gguf", tensors, gguf_metadata(CASES["qwen2"], config))[0]


@pytest.mark.parametrize("decoder", ["native", pytest.param("transformers", marks=pytest.mark.long)])
def test_codes_of_a_file_are_copied_once(decoder: str, gguf_models: tuple[Path, Path]) -> None:
    before, after, peak = memory_of(decoder, "bfloat16", *gguf_models)
    stored = gguf_models[0].stat().st_size
    assert stored > 80 * MIB
    assert after - before <= 1.05 * stored + 16 * MIB
    assert peak is None or peak - before <= 1.1 * stored + 128 * MIB


@pytest.mark.long  # tests above have the same with a sixth of the weights
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_a_process_with_half_a_billion_weights_stays_small(dtype: str, tmp_path: Path) -> None:
    model = written(tmp_path / "model", *SHAPES["qwen2-0.5b"])
    _, after, peak = memory_of("native", dtype, model)
    weights = num_weights(model) * (2 if dtype == "bfloat16" else 4)
    assert after <= 1.3 * weights + 300 * MIB
    assert peak is None or peak <= 1.3 * weights + 300 * MIB
