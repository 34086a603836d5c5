"""What a name of a model is, and what a name that leads to no model was meant to be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loader import model_directory
from rtlang.model.loading.model_config import ModelConfig
from rtlang.model.loading.model_names import HubName


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("team/tiny", HubName("team/tiny", None)),
        ("team/tiny-2.5_b", HubName("team/tiny-2.5_b", None)),
        ("team/tiny@v1.0", HubName("team/tiny", "v1.0")),
        ("team/tiny@refs/pr/3", HubName("team/tiny", "refs/pr/3")),
        ("team/tiny-GGUF", HubName("team/tiny-GGUF", None)),
        ("team/tiny@", None),
        ("team/tiny@a b", None),
        ("tiny@v1.0", None),
        ("tiny", None),
        ("/team/tiny", None),
        ("./team/tiny", None),
        ("../tiny", None),
        ("~/tiny", None),
        ("a/b/c", None),
        ("rtlang:tiny", None),
        ("team/", None),
        ("models/tiny.gguf", None),
        ("team/tiny:tiny-q4.gguf", HubName("team/tiny", None, "tiny-q4.gguf")),
        ("team/tiny/tiny-q4.gguf", HubName("team/tiny", None, "tiny-q4.gguf")),
        ("team/tiny:q4/tiny.GGUF@v1.0", HubName("team/tiny", "v1.0", "q4/tiny.GGUF")),
        ("team/tiny@v1.0:tiny-q4.gguf", HubName("team/tiny", "v1.0", "tiny-q4.gguf")),
        ("team/tiny@v1.0/tiny-q4.gguf", HubName("team/tiny", "v1.0", "tiny-q4.gguf")),
        ("team/tiny@refs/pr/3:tiny.gguf", None),
        ("team/tiny@v1:tiny.gguf@v2", None),
        ("/team/tiny/tiny.gguf", None),
        ("./team/tiny/tiny.gguf", None),
        ("team/tiny/../tiny.gguf", None),
        ("team/tiny:tiny.bin", None),
        ("out/model.safetensors", None),
    ],
)
def test_which_names_are_of_a_hub(model: str, expected: HubName | None) -> None:
    assert HubName.parse(model) == expected


def test_a_directory_of_that_name_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "team" / "tiny").mkdir(parents=True)
    assert HubName.parse("team/tiny") is None
    assert model_directory("team/tiny") == Path("team/tiny")


def test_a_file_in_a_folder_that_is_here_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "team").mkdir()
    assert HubName.parse("team/tiny/tiny.gguf") is None
    assert HubName.parse("team/tiny:tiny.gguf") == HubName("team/tiny", None, "tiny.gguf")
    (tmp_path / "team" / "tiny:tiny.gguf").touch()
    assert HubName.parse("team/tiny:tiny.gguf") is None


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("llama3:8b", "a name of Ollama, whose models are GGUF files"),
        ("qwen2.5:7b-instruct-q4_K_M", "a name of Ollama, whose models are GGUF files"),
        ("library/llama3:8b", "a name of Ollama, whose models are GGUF files"),
        ("team/tiny:v1.0", "a revision is written team/tiny@v1.0"),
        (
            "hub.example/team/tiny:Q4_K_M",
            "'team/tiny'; its tag 'Q4_K_M' selects a GGUF file: pass owner/name:FILE.gguf",
        ),
        ("hub.example/team/tiny", "pass the name on the hub, 'team/tiny'"),
        ("hf:team/tiny", "pass 'team/tiny'"),
        ("hf://team/tiny@v1.0", "pass 'team/tiny@v1.0'"),
        ("https://hub.example/team/tiny", "pass the name on the hub, 'team/tiny'"),
        ("https://hub.example/team/tiny/", "pass the name on the hub, 'team/tiny'"),
        ("https://hub.example/team/tiny/tree/v1.0", "pass the name on the hub, 'team/tiny@v1.0'"),
        ("http://hub.example:80/team/tiny/blob/main/config.json", "pass the name on the hub, 'team/tiny'"),
        ("https://hub.example/team/tiny/resolve/main/a.safetensors?download=true", "the name on the hub, 'team/tiny'"),
        ("https://hub.example/", "it is a URL; a model on a hub is owner/name"),
        ("file:///data/model", "pass the path, /data/model"),
        ("s3://bucket/model", "s3: is not read: download the model"),
        ("tiny-0.5B", "a model on a hub is owner/name or owner/name@revision"),
        ("tiny@v1.0", "a model on a hub is owner/name or owner/name@revision"),
        ("team/tiny/", "'team/tiny'"),
        ("team/tiny/tree/v1.0", "'team/tiny@v1.0'"),
        ("team/tiny/subfolder", "'team/tiny'"),
        (" team/tiny\n", "without the blanks around it: 'team/tiny'"),
        ("rtlang:large", "the model that is part of the package is rtlang:tiny"),
        ("$MODELS/tiny", "variables in a path are not replaced"),
        ("models/tiny.gguf", "no such directory or file; a GGUF file on a hub is owner/name:FILE.gguf"),
        ("models/model.safetensors", "pass the directory that holds config.json and the weights"),
        ("no/such/dir/at/all", ""),
        ("/no/such/dir", ""),
        ("x" * 5000, ""),
        ("~nobody-of-this-name/model", ""),
        ("a\0b", ""),
    ],
)
def test_a_name_that_leads_nowhere_says_what_was_meant(
    model: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelLoadError) as caught:
        model_directory(model)
    assert caught.value.path == model
    assert caught.value.reason.startswith("no such directory")
    assert expected in caught.value.reason


def test_a_near_name_and_a_revision_of_a_directory_are_recognised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = tmp_path / "half-model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    for name in ("half-modle", "./half-modle", str(tmp_path / "half-modl")):
        with pytest.raises(ModelLoadError, match=r"no such directory; did you mean .*half-model\?"):
            model_directory(name)
    for name in ("half-model@main", f"{model}@v1"):
        with pytest.raises(ModelLoadError, match="a directory has no revision"):
            model_directory(name)


@pytest.mark.parametrize(
    ("files", "model", "expected"),
    [
        ({"config.json": "{}", "model.safetensors": ""}, "model.safetensors", "it is a file; pass its directory, "),
        ({"config.json": "{}"}, "config.json", "it is a file; pass its directory, "),
        ({"tiny-q4.gguf": ""}, "tiny-q4.gguf", "the file is empty"),
        ({"tiny.llamafile": ""}, "tiny.llamafile", "it is a program with a GGUF file inside"),
        ({"model.zip": ""}, "model.zip", "it is an archive; unpack it"),
        ({"pytorch_model.bin": ""}, "pytorch_model.bin", "the weights are pickled (pytorch_model.bin)"),
        ({"adapter_model.safetensors": ""}, "adapter_model.safetensors", "it is an adapter (LoRA), not a whole model"),
        ({"notes.txt": ""}, "notes.txt", "it is a file, expected the model's directory"),
        (
            {"tiny-q4.gguf": "", "tiny-q8.gguf": ""},
            "",
            "it has 2 GGUF models; pass one of the files: tiny-q4.gguf, tiny-q8",
        ),
        ({"pytorch_model.bin": ""}, "", "the weights are pickled (pytorch_model.bin)"),
        ({"params.json": "{}", "consolidated.00.pth": ""}, "", "the layout of the model's authors"),
        (
            {"adapter_config.json": json.dumps({"base_model_name_or_path": "team/base"})},
            "",
            "it is an adapter (LoRA) of 'team/base', not a whole model",
        ),
        ({"checkpoint-5/config.json": "{}"}, "", "subfolders that contain one: checkpoint-5"),
        ({"snapshots/abc/config.json": "{}"}, "", "it is a folder of the hub's cache"),
        ({"model.safetensors": "", "tiny.gguf": ""}, "", "config.json is missing; a model directory must contain it"),
        ({}, "", "config.json is missing: the directory is empty"),
    ],
)
def test_a_path_that_is_no_model_says_what_is_there(
    files: dict[str, str], model: str, expected: str, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(ModelLoadError) as caught:
        ModelConfig.from_pretrained(model_directory(str(tmp_path / model)))
    assert expected in caught.value.reason
