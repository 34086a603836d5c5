"""Published files are read as the `gguf` package reads them; skipped where they have not been downloaded."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
import torch

from rtlang.model.loading.gguf.container import GgufFile
from rtlang_kernels.reference.low_bit import exact_weight
from tests.support.models.real_weights import REAL_MODELS, real_gguf

NUM_ROWS = 8  # of each tensor


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL_MODELS)
def test_metadata_and_tensors_are_those_of_the_package(name: str) -> None:
    path = real_gguf(name)
    reader = gguf.GGUFReader(path)
    with GgufFile.open(path) as file:
        fields = {key: field for key, field in reader.fields.items() if not key.startswith("GGUF.")}
        assert file.metadata.keys() == fields.keys()
        for key, field in fields.items():
            assert np.array_equal(field.contents(), file.metadata[key]), key
        assert list(file.tensors) == [each.name for each in reader.tensors]
        for tensor in reader.tensors:
            entry, data = file.tensors[tensor.name], tensor.data[:NUM_ROWS]
            assert entry.kind.name == tensor.tensor_type.name
            assert list(entry.shape) == tensor.shape[::-1].tolist()
            assert (entry.first_byte, entry.num_bytes) == (tensor.data_offset, tensor.n_bytes)
            expected = torch.tensor(gguf.quants.dequantize(data, tensor.tensor_type))
            if entry.kind.format is None:
                assert torch.equal(file.tensor(tensor.name)[:NUM_ROWS], expected)
            else:
                assert torch.equal(exact_weight(file.weight(tensor.name), 0, NUM_ROWS).float(), expected)
