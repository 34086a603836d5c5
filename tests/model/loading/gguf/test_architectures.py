"""The names of architectures and their tensors, against the `gguf` package and the classes of transformers."""

from __future__ import annotations

import re
from pathlib import Path

import gguf
import pytest
import transformers
from gguf.constants import MODEL_ARCH_NAMES, MODEL_TENSORS, TENSOR_NAMES

from rtlang.model.loading.gguf.architectures import ARCHITECTURES

_NUMBER_OF = {name: number for number, name in MODEL_ARCH_NAMES.items()}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_stems_are_those_of_the_package(name: str) -> None:
    number = _NUMBER_OF[name.partition(" ")[0]]
    known = {TENSOR_NAMES[each].replace("blk.{bid}.", "") for each in MODEL_TENSORS[number]}
    stems = {each.partition(".")[0] for each in ARCHITECTURES[name].stems}
    assert stems <= known, stems - known
    assert set(ARCHITECTURES[name].outer) <= known | {"output", "output_norm"}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_classes_are_those_of_the_model_type(name: str) -> None:
    architecture = ARCHITECTURES[name]
    kind = getattr(transformers, architecture.class_name)
    assert kind.config_class is transformers.CONFIG_MAPPING[architecture.model_type]


def test_stems_lead_to_names_that_the_package_leads_back() -> None:
    for name, architecture in ARCHITECTURES.items():
        table = gguf.get_tensor_name_map(_NUMBER_OF[name.partition(" ")[0]], 1)
        for stem, part in architecture.stems.items():
            found = table.get_name(f"model.layers.0.{part}")
            assert found in (None, f"blk.0.{stem.partition('.')[0]}"), (name, stem, found)


def test_the_documentation_lists_them() -> None:
    page = (Path(__file__).parents[4] / "docs" / "model-families.md").read_text(encoding="utf-8")
    listed = page.partition("The architectures (`general.architecture`) that are served:")[2].partition(".\n")[0]
    assert re.findall("`(.+?)`", listed) == sorted(name for name in ARCHITECTURES if " " not in name)
