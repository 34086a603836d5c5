"""Models in the form in which a hub has them: what is served gives the tokens of `transformers`, what is refused says what to do."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rtlang.contract.errors import ModelLoadError
from tests.support.models.families import FAMILIES
from tests.support.models.family_table import PAGE, table_in, write_table
from tests.support.models.hub_models import HUB_ROWS, HubModel
from tests.support.models.hub_table import MARKERS, check_hub_model, hub_table

QUICK = (
    "Qwen3-VL 2B to 32B",
    "Gemma 4 E2B, E4B",
    "Kimi K2.5 (converted)",
    "Kimi K2",
    "GPT-OSS 20B, 120B",
    "Nemotron 3",
    "Qwen3-Embedding",
)

FAMILIES_OF_TEXT = [family for family in FAMILIES if family.refusal is None]


def marked() -> Iterator[Any]:
    """All models as parameters. A served one is long where an earlier one is published in the same class and format, and where
    test_families.py compares it: a model of text in floats."""
    kinds: set[tuple[object, ...]] = set()
    for model in (model for row in HUB_ROWS for model in row.models):
        kind = model.decoder, model.number_format, model.published_class, model.stock_class
        is_family = model.decoder is not None and model.rounding is None and model.family in FAMILIES_OF_TEXT
        is_new = (model.decoder is None or kind not in kinds) and not is_family
        kinds.add(kind)
        marks = () if model.title in QUICK else pytest.mark.slow if is_new else pytest.mark.long
        yield pytest.param(model, id=model.title.replace(" ", "_"), marks=marks)


pytestmark = pytest.mark.filterwarnings("ignore:::transformers", "ignore::DeprecationWarning")


def skip_unknown(model: HubModel) -> None:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    if model.family.model_type not in CONFIG_MAPPING:
        pytest.skip(f"the installed transformers has no {model.family.model_type}")


@pytest.mark.parametrize("model", list(marked()))
def test_a_published_model_is_served_or_refused_as_declared(model: HubModel, tmp_path: Path) -> None:
    skip_unknown(model)
    check_hub_model(model, tmp_path)


def test_a_model_that_is_not_what_it_is_declared_to_be_is_seen(tmp_path: Path) -> None:
    by_title = {model.title: model for row in HUB_ROWS for model in row.models}
    served, refused = by_title["TinyLlama"], by_title["Reward models (Llama)"]
    with pytest.raises(ModelLoadError, match="does not generate text"):
        check_hub_model(HubModel("", refused.published_class, served.family, stock_class="LlamaForCausalLM"), tmp_path)
    embedding = dataclasses.replace(by_title["Qwen3-Embedding"], files={})  # without them it is a language model
    with pytest.raises(AssertionError):
        check_hub_model(embedding, tmp_path)


def test_most_groups_of_models_load() -> None:
    assert len(HUB_ROWS) == 44
    assert sum(row.is_served for row in HUB_ROWS) >= 32
    assert len({model.title for row in HUB_ROWS for model in row.models}) >= 30


def test_the_table_of_published_models_is_up_to_date(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert table_in(text, MARKERS) == hub_table(), "run: python -m tests.support.models.hub_table"
    copy = tmp_path / PAGE.name
    copy.write_text(text, encoding="utf-8")
    write_table(copy, hub_table(), MARKERS)
    assert copy.read_text(encoding="utf-8") == text
