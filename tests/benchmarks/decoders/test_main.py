"""The comparison of families: every family loads, and a line has its ratios."""

from __future__ import annotations

import re

import pytest

from rtlang_bench.decoders import __main__ as command
from rtlang_bench.decoders import shapes


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_line_shows_the_ratio_to_the_llama_with_as_many_weights(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = {"vocab_size": 1024, "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 2, "head_dim": 32}
    monkeypatch.setattr(shapes, "SIZES", shapes.SIZES | small | {"num_key_value_heads": 1})
    code = command.main(["granite", "--layers", "2", "--repeats", "2"])
    (line,) = capsys.readouterr().out.splitlines()
    ratios = [float(each) for each in re.findall(r"([\d.]+)x of", line)]
    assert line.startswith("granite (native): 1 rows ")
    assert len(ratios) == 3
    assert code == (max(ratios) > command.BOUND) or max(ratios) == pytest.approx(command.BOUND, abs=0.01)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_rows_of_a_recurrent_family_have_states(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = {"vocab_size": 1024, "hidden_size": 64, "num_attention_heads": 2, "head_dim": 32, "num_key_value_heads": 1}
    heads = dict.fromkeys(("linear_num_key_heads", "linear_num_value_heads"), 2)
    narrow = dict.fromkeys(("linear_key_head_dim", "linear_value_head_dim"), 16)
    fields = shapes.FAMILIES["qwen3_5_text"] | heads | narrow | {"intermediate_size": 96}
    monkeypatch.setattr(shapes, "SIZES", shapes.SIZES | small)
    monkeypatch.setitem(shapes.FAMILIES, "qwen3_5_text", fields)
    command.main(["qwen3_5_text", "--layers", "4", "--repeats", "1"])
    (line,) = capsys.readouterr().out.splitlines()
    assert len(re.findall(r"([\d.]+)x of", line)) == 3


def test_families_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["unheard_of"])
    assert "unheard_of: expected some of" in capsys.readouterr().err


def test_the_llama_has_as_many_weights_as_each_family() -> None:
    import torch
    import transformers

    def count(family: str) -> int:
        fields = shapes.entries(family) | {"num_hidden_layers": 4, "vocab_size": 256}
        if "layer_types" in fields:
            fields["layer_types"] = fields["layer_types"][:4]
        config = transformers.AutoConfig.for_model(family, **fields)
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(config)
        return sum(each.numel() for each in model.parameters() if each.ndim > 1)

    counts = {family: count(family) for family in shapes.FAMILIES}
    recurrent = counts.pop("qwen3_5_text")
    assert set(counts.values()) == {count(shapes.TWIN)}
    assert recurrent == pytest.approx(count(shapes.TWIN), rel=0.005)
