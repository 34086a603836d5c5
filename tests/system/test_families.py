"""Every family of causal models that is served gives the tokens of `transformers`; every other is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from rtlang.model.decoders.transformers_decoder import TransformersDecoder
from tests.support.long_tests import is_long
from tests.support.models.families import FAMILIES, Family, served
from tests.support.models.family_check import FULL, SMALL, check_refused, check_served
from tests.support.models.family_table import MARKERS, PAGE, family_table, table_in, write_table

QUICK = ("llama", "mistral", "qwen3", "gemma2", "gemma3_text", "gpt2", "falcon", "gpt_oss", "deepseek_v3")
QUICK_STATES = ("qwen3_next", "kimi_linear", "falcon_h1", "minimax", "jamba", "mamba2", "lfm2", "zamba2")


def mark_of(family: Family, decoder: str) -> pytest.MarkDecorator:
    """A family of the native decoder is compared on the other one as well in long runs."""
    return pytest.mark.long if family.is_native and decoder == "transformers" else pytest.mark.slow


SERVED = [
    pytest.param(
        family,
        variant,
        decoder,
        id=f"{family.model_type}-{variant or 'plain'}-{decoder}".replace(" ", "_"),
        marks=() if family.model_type in QUICK + QUICK_STATES and variant is None else mark_of(family, decoder),
    )
    for family, variant, decoder in served()
]
REFUSED = [
    pytest.param(
        family,
        id=family.model_type,
        marks=() if family.model_type in ("rwkv", "zaya", "gpt_neo", "bloom") else pytest.mark.slow,
    )
    for family in FAMILIES
    if family.refusal is not None
]
pytestmark = pytest.mark.filterwarnings("ignore:::transformers", "ignore::DeprecationWarning")


def skip_unknown(family: Family) -> None:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    if family.model_type not in CONFIG_MAPPING:
        pytest.skip(f"the installed transformers has no {family.model_type}")


@pytest.mark.parametrize(("family", "variant", "decoder"), SERVED)
def test_a_busy_engine_gives_the_greedy_tokens_of_transformers(
    family: Family, variant: str | None, decoder: str, tmp_path: Path
) -> None:
    """In a usual run, most families serve the small load."""
    skip_unknown(family)
    is_full = is_long() or (variant is None and family.model_type in QUICK + QUICK_STATES)
    check_served(family, variant, decoder, tmp_path, FULL if is_full else SMALL)


@pytest.mark.parametrize("family", REFUSED)
def test_what_cannot_be_served_is_refused_by_name(family: Family, tmp_path: Path) -> None:
    skip_unknown(family)
    check_refused(family, tmp_path)


@pytest.mark.parametrize(
    ("model_type", "forgotten"),
    [("gemma2", "softcap"), ("gemma2", "window"), ("gpt_oss", "s_aux"), ("granite", "scaling"), ("mistral", "window")],
)
def test_the_comparison_sees_what_attention_forgets(
    model_type: str, forgotten: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attend = TransformersDecoder._attend

    def forgetful(
        self: TransformersDecoder, module: Any, q: Any, k: Any, v: Any, mask: object, options: Any
    ) -> torch.Tensor:
        if forgotten == "window":
            return attend(self, module, q, k, v, None, {**options, "sliding_window": None})
        return attend(self, module, q, k, v, mask, {**options, forgotten: None})

    monkeypatch.setattr(TransformersDecoder, "_attend", forgetful)
    monkeypatch.setattr(
        TransformersDecoder, "_check_exact", lambda *_: None
    )  # it would refuse the model before the comparison
    (family,) = (family for family in FAMILIES if family.model_type == model_type)
    with pytest.raises(AssertionError, match="token"):
        check_served(family, None, "transformers", tmp_path)


def test_the_table_of_families_is_up_to_date(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert table_in(text, MARKERS) == family_table(), "run: python -m tests.support.models.family_table"
    copy = tmp_path / PAGE.name
    copy.write_text(text, encoding="utf-8")
    write_table(copy, family_table(), MARKERS)
    assert copy.read_text(encoding="utf-8") == text
