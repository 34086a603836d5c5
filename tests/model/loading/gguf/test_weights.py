"""The weights of GGUF files by the names of transformers, against the models that the files were written from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.gguf.configs import config_entries
from rtlang.model.loading.gguf.container import GgufFile
from rtlang.model.loading.gguf.weights import GgufWeights, multiplied_out
from rtlang.model.loading.published import model_class, quiet
from tests.support.models.gguf_files import write_gguf
from tests.support.models.gguf_models import CASES, gguf_metadata, gguf_tensors, make_model, write_model

_IDS = torch.tensor([[1, 300, 290, 40, 77, 280, 299, 310, 12, 45, 260, 261, 262, 330, 331, 5, 6, 7]])


def _read(path: Path) -> Any:
    """The model of transformers that config and weights of a file make."""
    import transformers

    with GgufFile.open(path) as file, quiet():
        entries = config_entries(file)
        config = transformers.CONFIG_MAPPING[entries["model_type"]].from_dict(entries)
        config._attn_implementation = "eager"
        weights = GgufWeights(file, entries)
        state = {name: weights.tensor(name, torch.float32) for name in weights.names()}
        for name, values in state.items():
            assert tuple(values.shape) == weights.shape(name)
        kind = model_class(config)
        model, found = kind.from_pretrained(None, config=config, state_dict=_merged(state), output_loading_info=True)
    assert not found["missing_keys"], found
    assert not found["unexpected_keys"], found
    return model.float().eval().requires_grad_(False)


def _merged(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Experts of GPT-OSS as its published files have them: stacked, [experts, in, out], gate and up in turns."""
    if not any(name.endswith("gate_up_proj_bias") for name in state):
        return state
    found = {name: values for name, values in state.items() if ".mlp.experts." not in name or name.endswith("_bias")}
    for layer in range(2):
        start = f"model.layers.{layer}.mlp.experts."

        def stack(part: str, start: str = start) -> torch.Tensor:
            return torch.stack([state[f"{start}{expert}.{part}.weight"] for expert in range(4)]).transpose(1, 2)

        found[start + "gate_up_proj"] = torch.stack([stack("gate_proj"), stack("up_proj")], -1).flatten(2)
        found[start + "down_proj"] = stack("down_proj")
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_file_has_the_model_that_it_was_written_from(name: str, tmp_path: Path) -> None:
    model = make_model(CASES[name])
    found = _read(write_model(tmp_path / "model.gguf", CASES[name], model))
    expected, logits = model(_IDS).logits[0], found(_IDS).logits[0]
    assert float((logits - expected).norm() / expected.norm()) < 1e-5


def test_codes_are_handed_out_in_the_order_of_transformers(tmp_path: Path) -> None:
    case = CASES["mixtral"]
    path = write_model(tmp_path / "model.gguf", case, make_model(case), "Q8_0")
    with GgufFile.open(path) as file:
        weights = GgufWeights(file, config_entries(file))
        coded = [name for name in weights.names() if weights.low_bit(name) is not None]
        assert len(coded) == 2 * (4 + 3 * 4) + 2  # all but norms and routers
        for name in coded:
            weight = weights.low_bit(name)
            assert weight is not None
            assert weight.shape == weights.shape(name)
            assert torch.equal(multiplied_out(weight), weights.tensor(name, torch.float32))
        assert sum(map(weights.num_bytes, weights.names())) == file.num_bytes


def test_experts_of_old_files_are_tensors_of_their_own(tmp_path: Path) -> None:
    case = CASES["mixtral"]
    model = make_model(case)
    tensors = {}
    for name, values in gguf_tensors(case, model).items():
        if "_exps" in name:
            tensors |= {name.replace("_exps", f".{expert}"): part for expert, part in enumerate(values)}
        else:
            tensors[name] = values
    found = _read(write_gguf(tmp_path / "model.gguf", tensors, gguf_metadata(case, model.config))[0])
    assert torch.equal(found(_IDS).logits, model(_IDS).logits)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"blk.0.attn_bogus.weight": (4, 4)},
            "tensor blk.0.attn_bogus.weight is unexpected in a model of architecture",
        ),
        ({"extra.weight": (4,)}, "tensor extra.weight is unexpected"),
        ({"blk.2.attn_q.weight": (64, 64)}, "tensor blk.2.attn_q.weight is unexpected: the file has 2 layers"),
        ({"blk.0.ffn_up_exps.weight": (5, 96, 64)}, r"has shape \[5, 96, 64\]: expected 4 parts"),
        ({"blk.0.attn_q.weight": (60, 64)}, r"has shape \[60, 64\]: expected outputs of 4 heads of even size"),
    ],
)
def test_a_tensor_without_a_place_is_refused(tmp_path: Path, change: dict[str, tuple[int, ...]], reason: str) -> None:
    case = CASES["mixtral"]
    model = make_model(case)
    tensors = {**gguf_tensors(case, model), **{name: np.zeros(shape, np.float32) for name, shape in change.items()}}
    (path,) = write_gguf(tmp_path / "model.gguf", tensors, gguf_metadata(case, model.config))
    with GgufFile.open(path) as file, pytest.raises(ModelLoadError, match=reason):
        GgufWeights(file, config_entries(file))
