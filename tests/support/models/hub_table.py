"""The table of published models in docs/model-families.md, from `tests/support/models/hub_models.py`.

    python -m tests.support.models.hub_table        # load every model, print what became of each row, then write the table

Every served model is compared with `transformers` token for token in float32, on each decoder that computes it, and loaded in bfloat16
with outlier channels. Nothing is written where a model does not behave as it is declared.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ModelLoadError
from rtlang.model.decoders.native_decoder import NativeDecoder
from rtlang.model.host_runner import HostRunner
from rtlang.model.loader import load_model
from rtlang.model.loading.model_config import ModelConfig
from tests.support.models.families import MAX_LEN
from tests.support.models.family_check import check_against_stock
from tests.support.models.family_table import PAGE, write_table
from tests.support.models.hub_models import HUB_ROWS, HubModel
from tests.support.models.model_steps import ragged_logits
from tests.support.models.quantized_checkpoints import quantize_checkpoint
from tests.support.models.tiny_models import VOCAB_SIZE, plant_outliers, random_model, save_checkpoint, write_tokenizer

MARKERS = "<!-- published models: made by tests/support/models/hub_table.py -->", "<!-- published models end -->"


def check_hub_model(model: HubModel, path: Path) -> str:
    """Make a published model in the folder `path` and see that it is served, or refused, as it is declared.

    Returns:
        What became of it, in a line.
    Raises:
        ModelLoadError: it is refused although it is declared to be served.
        AssertionError: it is served although it should be refused, or a token differs.
    """
    if model.refusal is not None:
        return _check_refused(model, path)
    if model.rounding is not None:
        return _check_rounded(model, path)
    stock = random_model(model.config(), class_name=model.stock_class or model.published_class)
    stock.set_attn_implementation("eager")
    _save(stock, model, path)
    native = ModelConfig.from_pretrained(path).native is not None
    assert native == (model.decoder == "native"), model.title
    decoders = ("native", "transformers") if native else ("transformers",)
    for decoder in decoders:
        check_against_stock(stock, path, decoder)
    plant_outliers(stock)
    _save(stock.to(torch.bfloat16), model, path)
    for decoder in ("auto", "transformers"):
        made = load_model(_load_config(path, decoder, "bfloat16"))[0]
        assert isinstance(made, NativeDecoder) == (native and decoder == "auto")
    return f"equal on the {' and the '.join(decoders)} decoder; loads in bfloat16"


def hub_table() -> str:
    """The section between the markers."""
    num_served = sum(row.is_served for row in HUB_ROWS)
    lines = [
        f"Of {len(HUB_ROWS)} groups of models, {num_served} load in a form in which they are published:",
        "",
        "| model | published class | published format | loads |",
        "|---|---|---|---|",
    ]
    for row in HUB_ROWS:
        lines.extend(
            f"| {each.title} | {each.published_class} | {each.number_format} | {_loads(each)} |" for each in row.models
        )
    return "\n".join(lines)


def _loads(model: HubModel) -> str:
    if model.decoder is None:
        return f"no: {model.refusal}"
    return f"{'its text, ' if model.is_multimodal else 'yes, '}{model.decoder}"


def _check_refused(model: HubModel, path: Path) -> str:
    """A configuration and a tokenizer are enough: nothing else is read."""
    assert model.refusal is not None
    config = model.config()
    config.architectures = [model.published_class]
    config.save_pretrained(path)
    _publish(model, path)
    save_file({"model.norm.weight": torch.ones(8)}, path / "model.safetensors")
    write_tokenizer(path)
    with pytest.raises(ModelLoadError) as refused:
        load_model(_load_config(path, "auto", "float32"))
    reason = str(refused.value.reason)
    assert model.refusal in reason, reason
    return f"refused: {reason}"


def _check_rounded(model: HubModel, path: Path) -> str:
    """Compare the logits with those of a float model of the same values: inputs of layers may be rounded to 8 bits."""
    assert model.rounding is not None
    folder = path / "codes"
    _save(random_model(model.config(), class_name=model.stock_class or model.published_class), model, folder)
    twin = quantize_checkpoint(folder, path / "floats", model.rounding)
    found, expected = (ragged_logits(_runner(each), VOCAB_SIZE) for each in (folder, twin))
    for (_, logits), (_, others) in zip(found, expected, strict=True):
        error = float((logits - others).norm() / others.norm())
        assert error < 0.05, error
    return "equal to its floats on the transformers decoder"


def _runner(path: Path) -> HostRunner:
    runner = HostRunner(
        RuntimeConfig(model=str(path), dtype="float32", max_model_len=MAX_LEN, num_pages=64, page_size=4, num_threads=1)
    )
    runner.load()
    return runner


def _save(stock: Any, model: HubModel, path: Path) -> None:
    save_checkpoint(stock, path)
    _publish(model, path)


def _publish(model: HubModel, path: Path) -> None:
    """Give the directory the entries and files that the published one has."""
    raw = json.loads((path / "config.json").read_text(encoding="utf-8"))
    for name, value in model.entries.items():
        raw[name] = {**raw[name], **value} if isinstance(raw.get(name), dict) else value
    raw["architectures"] = [model.published_class]
    (path / "config.json").write_text(json.dumps(raw), encoding="utf-8")
    for name, content in model.files.items():
        (path / name).write_text(content, encoding="utf-8")


def _load_config(path: Path, decoder: str, dtype: str) -> RuntimeConfig:
    return RuntimeConfig(model=str(path), decoder=decoder, dtype=dtype, max_model_len=MAX_LEN, num_threads=1)


def main() -> None:
    """Check every row and print it, then write the table."""
    warnings.simplefilter("ignore")
    failures: list[Any] = []
    num_loaded = 0
    for number, row in enumerate(HUB_ROWS, start=1):
        results = []
        for model in row.models:
            with tempfile.TemporaryDirectory() as scratch:
                try:
                    results.append(
                        f"{model.title} ({model.published_class}, {model.number_format}): {check_hub_model(model, Path(scratch))}"
                    )
                except (AssertionError, ModelLoadError) as error:
                    failures.append(model)
                    results.append(f"{model.title} ({model.published_class}, {model.number_format}): FAILED: {error}")
        is_loaded = row.is_served and not any(model in failures for model in row.models)
        num_loaded += is_loaded
        print(f"{number:2d} {'loads  ' if is_loaded else 'refused'} {row.title}", *results, sep="\n      ", flush=True)
    print(f"{num_loaded} of {len(HUB_ROWS)} rows load; {len(failures)} models do not behave as declared")
    if failures:
        sys.exit(1)
    write_table(PAGE, hub_table(), MARKERS)


if __name__ == "__main__":
    main()
