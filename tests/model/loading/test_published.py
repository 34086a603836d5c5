"""Which published classes are text models, and what is read of models that take more than text."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import safetensors
import torch
from safetensors.torch import load_file, save_file

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ModelLoadError
from rtlang.model.decoders.native_decoder import NativeDecoder
from rtlang.model.decoders.transformers_decoder import TransformersDecoder
from rtlang.model.loader import load_model, weight_bytes
from rtlang.model.loading.model_config import ModelConfig
from rtlang.model.loading.published import read_config, refuse_published, text_readers
from tests.support.models.hub_models import HUB_ROWS, HubModel
from tests.support.models.tiny_models import EOS_TOKEN_ID, make_checkpoint, random_model, save_checkpoint

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:transformers")


def hub_model(title: str) -> HubModel:
    (found,) = (each for row in HUB_ROWS for each in row.models if each.title == title)
    return found


def make_hub_model(title: str, path: Path) -> Any:
    model = hub_model(title)
    made = random_model(model.config(), class_name=model.stock_class or model.published_class)
    save_checkpoint(made, path)
    return made


def edit_config(path: Path, **changes: Any) -> None:
    """Change entries of config.json; None removes one."""
    raw = {**json.loads((path / "config.json").read_text()), **changes}
    (path / "config.json").write_text(json.dumps({name: value for name, value in raw.items() if value is not None}))


def load(path: Path, **settings: Any) -> Any:
    return load_model(RuntimeConfig(**{"model": str(path), "dtype": "float32", "max_model_len": 64, **settings}))[0]


@pytest.mark.parametrize(
    ("family", "class_name", "purpose"),
    [
        ("llama", "LlamaForSequenceClassification", "scores or classifies texts"),
        ("llama", "LlamaForTokenClassification", "labels the tokens"),
        ("qwen3", "Qwen3ForQuestionAnswering", "marks spans"),
        ("qwen2", "Qwen2Model", "returns hidden states"),
        ("gemma3", "Gemma3TextModel", "returns hidden states"),
        ("llama", "MyRewardForSequenceClassification", "scores or classifies texts"),
    ],
)
def test_classes_that_do_not_write_text_are_refused_by_name(
    family: str, class_name: str, purpose: str, tmp_path: Path
) -> None:
    path = make_checkpoint(tmp_path, family, tie_word_embeddings=True)
    edit_config(path, architectures=[class_name])
    for decoder in ("auto", "transformers"):
        with pytest.raises(ModelLoadError, match=f"{class_name} does not generate text: .*{purpose}.*; choose"):
            load(path, decoder=decoder)
    with pytest.raises(ModelLoadError, match=class_name):
        weight_bytes(RuntimeConfig(model=str(path)))


@pytest.mark.parametrize("class_name", ["LlamaForCausalLM", "LLaMAForCausalLM", None])
def test_classes_that_write_text_are_not(class_name: str | None, tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "llama")
    edit_config(path, architectures=class_name and [class_name])
    assert load(path).geometries


def test_an_embedding_model_with_the_class_of_a_language_model_is_refused(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "qwen3")
    (path / "modules.json").write_text('{"not": "a list"}')
    assert load(path).geometries
    pipeline = [{"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]
    (path / "modules.json").write_text(json.dumps(pipeline))
    with pytest.raises(
        ModelLoadError, match=r"Qwen3ForCausalLM does not generate text: .*embedding model.*choose a chat"
    ):
        load(path)


def test_an_unknown_model_type_takes_that_of_its_published_class(tmp_path: Path) -> None:
    for name, family, kind in (("a", "deepseek_v3", TransformersDecoder), ("b", "llama", NativeDecoder)):
        path = make_checkpoint(tmp_path / name, family)
        edit_config(path, model_type="renamed", auto_map={"AutoConfig": "configuration_other.OtherConfig"})
        assert read_config(path).model_type == family
        assert isinstance(load(path), kind)
    edit_config(path, architectures=["OtherForCausalLM"])
    with pytest.raises(
        ModelLoadError, match=r"does not know model type 'renamed': it requires remote code.*look for a version"
    ):
        load(path)


def test_defaults_of_the_text_half_are_those_of_its_class(tmp_path: Path) -> None:
    raw = {"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"], "eos_token_id": [1, 106]}
    text = {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34, "sliding_window": 1024}
    (tmp_path / "config.json").write_text(json.dumps({**raw, "text_config": text, "vision_config": {}}))
    config, expected = ModelConfig.from_pretrained(tmp_path), read_config(tmp_path).text_config
    assert (config.hidden_size, config.num_layers) == (2560, 34)
    assert config.vocab_size == expected.vocab_size
    assert config.num_q_heads == expected.num_attention_heads
    assert config.num_kv_heads == expected.num_key_value_heads
    assert config.head_dim == expected.head_dim
    assert config.eos_token_ids == {1, 106}
    assert config.is_multimodal


def test_a_native_text_half_has_the_defaults_of_its_class(tmp_path: Path) -> None:
    raw = {"model_type": "llava", "architectures": ["LlavaForConditionalGeneration"], "tie_word_embeddings": False}
    text = {"model_type": "llama", "vocab_size": 32064, "rms_norm_eps": 1e-5, "max_position_embeddings": 4096}
    (tmp_path / "config.json").write_text(json.dumps({**raw, "text_config": text, "vision_config": {}}))
    config = ModelConfig.from_pretrained(tmp_path)
    assert config.native is not None
    assert (config.hidden_size, config.num_q_heads, config.num_layers) == (4096, 32, 32)
    assert (config.native.intermediate_size, config.native.rms_norm_eps) == (11008, 1e-5)
    assert config.vocab_size == 32064


@pytest.mark.parametrize(
    ("title", "prefix", "head"),
    [
        ("LLaVA 1.5", "language_model.model.", "language_model.lm_head."),
        ("InternVL 3 and 3.5", "model.language_model.", "lm_head."),
        ("SmolVLM, SmolVLM2", "model.text_model.", "lm_head."),
        ("Qwen2.5-VL", "model.", "lm_head."),
        ("Mistral Small 3.1, 3.2, Magistral", "language_model.model.", "language_model.lm_head."),
    ],
)
def test_the_native_decoder_finds_a_text_half_under_the_names_of_any_age(
    title: str, prefix: str, head: str, tmp_path: Path
) -> None:
    make_hub_model(title, tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    with safetensors.safe_open(tmp_path / "model.safetensors", framework="pt") as reader:
        readers = text_readers(reader)
        renamed = {
            name.replace("model.", prefix, 1)
            if name.startswith("model.")
            else name.replace("lm_head.", head, 1): each.get_tensor(name)
            for name, each in readers.items()
        }
    towers = {
        name: tensor
        for name, tensor in tensors.items()
        if not any(torch.equal(tensor, each) for each in renamed.values())
    }
    assert len(towers) > 4
    save_file(
        {**renamed, **{f"tower.{name}": tensor for name, tensor in towers.items()}}, tmp_path / "model.safetensors"
    )
    with safetensors.safe_open(tmp_path / "model.safetensors", framework="pt") as reader:
        found = {name: each.get_tensor(name) for name, each in text_readers(reader).items()}
    assert found.keys() == readers.keys()
    assert isinstance(load(tmp_path), NativeDecoder)


@pytest.mark.parametrize(
    "title", ["Gemma 3 4B, 12B, 27B", "Phi-4-multimodal", "Qwen3-VL 30B-A3B, 235B-A22B", "Voxtral Mini, Small"]
)
def test_towers_are_neither_read_nor_kept(title: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from transformers import PreTrainedModel

    stock = make_hub_model(title, tmp_path)
    with caplog.at_level(logging.INFO, logger="rtlang"):
        model = load(tmp_path, decoder="transformers").model
    assert "only the text" in caplog.text
    assert "images and audio are not supported yet" in caplog.text
    assert "unused" not in caplog.text
    decoder = model.get_decoder()
    inner = [each for each in model.modules() if isinstance(each, PreTrainedModel)]
    assert {id(each) for each in inner} <= {id(model), id(model.base_model), id(decoder)}
    assert len(inner) < sum(isinstance(each, PreTrainedModel) for each in stock.modules())
    needed = weight_bytes(RuntimeConfig(model=str(tmp_path), dtype="float32", decoder="transformers"))
    assert needed < 4 * sum(each.numel() for each in stock.parameters())


def test_a_tower_that_cannot_be_read_does_not_matter(tmp_path: Path) -> None:
    make_hub_model("Mistral Small 3.1, 3.2, Magistral", tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    towers = [name for name in tensors if "vision_tower" in name or "projector" in name]
    assert len(towers) > 4
    for name in towers:
        tensors[name] = torch.zeros(3, dtype=torch.uint8)  # of another shape and dtype
    save_file(tensors, tmp_path / "model.safetensors")
    assert isinstance(load(tmp_path), NativeDecoder)


@pytest.mark.parametrize(
    "title", ["Gemma 3 4B, 12B, 27B", "Phi-4-multimodal", "Ministral 3 Base, Reasoning, Instruct-BF16"]
)
def test_deterministic_is_judged_by_the_text_half(title: str, tmp_path: Path) -> None:
    make_hub_model(title, tmp_path)
    assert load(tmp_path, decoder="transformers", deterministic=True).is_row_invariant


def test_the_end_tokens_of_a_nested_configuration_count(tmp_path: Path) -> None:
    make_hub_model("Gemma 3 4B, 12B, 27B", tmp_path)
    (tmp_path / "generation_config.json").unlink(missing_ok=True)
    assert ModelConfig.from_pretrained(tmp_path).eos_token_ids == {EOS_TOKEN_ID}


@pytest.mark.parametrize("entry", ["index_topk", "indexer_budget"])
@pytest.mark.parametrize("is_nested", [False, True])
def test_sparse_attention_is_refused_by_the_size_of_its_selection(entry: str, is_nested: bool, tmp_path: Path) -> None:
    """The model type may be one that no list knows yet."""
    part: dict[str, Any] = {"model_type": "llama", entry: 2048}
    raw = {"model_type": "llava", "text_config": part} if is_nested else part
    with pytest.raises(ModelLoadError, match=r"selects the keys that a token attends to \(sparse attention\)"):
        refuse_published(tmp_path, raw)
