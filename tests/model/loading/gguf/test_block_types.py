"""The types agree with ggml's sizes and with the formats that layers are tested with."""

from __future__ import annotations

import gguf
import pytest
from gguf.constants import GGMLQuantizationType

from rtlang.model.loading.gguf.block_types import BLOCK_TYPES, block_type
from tests.support.models.low_bit_weights import FORMATS


@pytest.mark.parametrize("number", BLOCK_TYPES)
def test_sizes_are_those_of_ggml(number: int) -> None:
    kind = block_type(number)
    known = GGMLQuantizationType(number)
    assert kind.name == known.name
    assert (kind.block, kind.block_bytes) == gguf.constants.GGML_QUANT_SIZES[known]
    assert (kind.dtype is None) != (kind.format is None)
    assert kind.num_bytes(6 * kind.block) == 6 * kind.block_bytes
    if kind.format is not None:
        assert kind.format == FORMATS[kind.name.lower()]


def test_other_types_are_refused_by_name() -> None:
    for number in [*GGMLQuantizationType, 4, 33, 99, 1 << 31]:
        if number not in BLOCK_TYPES:
            name = number.name if isinstance(number, GGMLQuantizationType) else ""
            with pytest.raises(
                ValueError, match=rf"^type = \w*{name} \({int(number)}\): expected one of F32, .*Q4_K.*NVFP4$"
            ):
                block_type(number)
