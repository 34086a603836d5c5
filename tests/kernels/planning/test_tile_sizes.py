"""The table of tiles covers every head size, with powers of two and little waste."""

from __future__ import annotations

import pytest
import torch

from rtlang_kernels.planning import tile_sizes


def test_a_head_size_is_one_or_two_powers_of_two() -> None:
    for size in range(1, 513):
        low, high = tile_sizes.split_dim(size)
        assert low >= 16
        assert low & (low - 1) == 0
        assert high == 0 or (high >= 16 and high & (high - 1) == 0 and high <= low)
        assert size <= low + high < 2 * max(size, 16)


def test_common_head_sizes_need_no_padding() -> None:
    assert [tile_sizes.split_dim(size) for size in (64, 80, 96, 128, 192, 256)] == [
        (64, 0),
        (64, 16),
        (64, 32),
        (128, 0),
        (128, 64),
        (256, 0),
    ]


def test_keys_serve_as_values_where_these_are_the_whole_first_part_of_their_tile() -> None:
    for rank in range(1, 600):
        for rope_dim in (1, 8, 32, 64):
            low, high = tile_sizes.split_dim(rank + rope_dim)
            is_whole = low == rank == sum(tile_sizes.split_dim(rank)) and high >= rope_dim
            assert tile_sizes.reuses_keys(rank + rope_dim, rank, 2) == is_whole
            assert not tile_sizes.reuses_keys(rank + rope_dim, rank, 4)
    assert tile_sizes.reuses_keys(576, 512, 2)
    assert tile_sizes.reuses_keys(288, 256, 2)
    assert not tile_sizes.reuses_keys(448, 384, 2)


def test_an_interpreted_device_is_small() -> None:
    assert tile_sizes.gpu_properties(torch.device("cpu")).num_multiprocessors < 16


def test_devices_without_products_of_float8_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a GPU")
    monkeypatch.setattr(torch.version, "hip", None)
    found = []
    for version in ((8, 0), (8, 9), (9, 0)):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device, version=version: version)
        found.append(tile_sizes.float8_product_obstacle(torch.device("cuda", 0)))
    assert found == ["a GPU has compute capability 8.0, float8 products need 8.9", None, None]
    monkeypatch.setattr(torch.version, "hip", "6.4")
    assert "AMD" in str(tile_sizes.float8_product_obstacle(torch.device("cuda", 0)))
    assert tile_sizes.float8_product_obstacle(torch.device("cpu")) is None
