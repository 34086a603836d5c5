"""Reads the published form of a checkpoint: the class that config.json names, and the half of a multimodal model that writes text.

A published config.json may leave out entries for which its class has defaults, may nest the text model, and may name a model type that
only remote code knows although the class is one of transformers. Read with the configuration class of transformers, all of these look
alike. Classes that do not write text are refused by name: their weights would fill a language model, whose text would be noise.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.gguf.model_files import gguf_config, is_gguf

logger = logging.getLogger(__name__)

_SPARSE = "it selects the keys that a token attends to (sparse attention), which is not supported yet; choose a model with full attention"
_OMNI = "models that also speak are not supported yet; choose a model of text and images, such as Qwen3-VL"
_STATES_INSIDE = "its layers keep their states inside of their modules, where only one sequence has room; choose Mamba or a hybrid model"
# Incorrect in ways that a short self-check cannot detect reliably.
_REFUSED = {
    "llama4": "its chunked attention numbers positions differently, which is not supported yet; choose Llama 3.x or Qwen3",
    "llama4_text": "its chunked attention numbers positions differently, which is not supported yet; choose Llama 3.x or Qwen3",
    "mllama": "its layers attend to images across the text, which is not supported; choose the text model Llama 3.1",
    "mllama_text_model": "its layers attend to images across the text, which is not supported; choose the text model Llama 3.1",
    "phimoe": "its rotary embedding depends on the longest sequence of the batch; choose Phi-4 or Mixtral",
    "qwen2_5_omni": _OMNI,
    "qwen3_omni_moe": _OMNI,
    "recurrent_gemma": _STATES_INSIDE,
    "rwkv": _STATES_INSIDE,
    "xlstm": _STATES_INSIDE,
    "deepseek_v32": _SPARSE,
    "deepseek_v4": _SPARSE,
    "glm_moe_dsa": _SPARSE,
    "glm5_next": _SPARSE,
    "minimax_m3_vl": _SPARSE,
    "mistral_large4": _SPARSE,
}
MEDIA_CONFIGS = {"vision_config": "images", "audio_config": "audio"}
"""Entries of config.json for inputs other than text, and the names of these inputs."""
# Names of the text half's tensors in files of any age; tensors of towers have other prefixes.
_TEXT_NAME = re.compile(
    r"(?:model\.language_model\.|language_model\.model\.|model\.text_model\.|language_model\.|model\.)?"
    r"(?:(?P<body>(?:embed_tokens|layers|norm)\..*)|lm_head\.(?P<head>.*))"
)
_STANDARD_NAMES = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"),
    "max_position_embeddings",
)
_PURPOSES = {
    "SequenceClassification": "it scores or classifies texts (a classifier, reward model or reranker)",
    "TokenClassification": "it labels the tokens of a text",
    "QuestionAnswering": "it marks spans of a text",
    "MultipleChoice": "it scores given answers",
    "MaskedLM": "it fills gaps in a text that it has read to the end",
    "Retrieval": "it makes embeddings of texts",
    "TextEncoding": "it makes embeddings of texts",
}


def read_config(directory: Path) -> Any:
    """Read the `transformers` configuration of a checkpoint, a directory or a GGUF file.

    A model type that transformers does not know is read as the type of the published class, if transformers has the class.

    Raises:
        ModelLoadError: the model type and the class are unknown, or the configuration is invalid.
    """
    from transformers import AutoConfig

    is_file = is_gguf(directory)
    raw = gguf_config(directory) if is_file else json.loads((directory / "config.json").read_text(encoding="utf-8"))
    known = _with_known_types(raw)
    try:
        with quiet():
            if is_file:
                return _known_types()[known["model_type"]].from_dict(known)
            if known is raw:
                return AutoConfig.from_pretrained(directory, trust_remote_code=False, local_files_only=True)
            logger.info("model type %r is read as %r, the type of %s", *_types(raw, known), raw.get("architectures"))
            return _known_types()[known["model_type"]].from_dict(known)
    except Exception as error:  # third-party code of any model type may raise anything
        if raw.get("model_type") in _known_types() and "auto_map" not in raw:
            what, reason = f"cannot read the {'metadata' if is_file else 'config.json'} of", first_line(error)
        elif "auto_map" in raw:
            what = "does not know"
            reason = "it requires remote code, which is never run; look for a version of the model in the format of transformers"
        else:
            what, reason = "does not know", first_line(error)
        raise ModelLoadError(
            str(directory), f"transformers {what} model type {raw.get('model_type')!r}: {reason}"
        ) from None


def refuse_published(directory: Path, raw: dict[str, Any]) -> None:
    """Refuse a checkpoint by the class and the model type that its config.json names, before anything else is read.

    Args:
        raw: the content of config.json.
    Raises:
        ModelLoadError: names the class or the model type, and what to do.
    """
    path, model_type = str(directory), raw.get("model_type")
    if model_type in _REFUSED:
        raise ModelLoadError(path, f"model type {model_type!r} is not supported: {_REFUSED[model_type]}")
    text = raw.get("text_config")
    parts = (raw, text) if isinstance(text, dict) else (raw,)
    if any("index_topk" in part or part.get("indexer_budget") is not None for part in parts):
        raise ModelLoadError(path, f"model type {model_type!r} is not supported: {_SPARSE}")
    name = _published_class(raw)
    if name is not None and not writes_text(name) and model_type in _known_types():
        raise ModelLoadError(
            path, f"{name} does not generate text: {_purpose(name)}; choose the model's *ForCausalLM or chat version"
        )
    if _is_sentence_encoder(directory):
        raise ModelLoadError(
            path,
            f"{name or model_type} does not generate text: its modules.json makes it an embedding model or reranker of "
            "sentence-transformers; choose a chat model",
        )


def writes_text(class_name: str) -> bool:
    """Whether a published class computes the next token of a text.

    Classes that transformers does not have are judged by their name.
    """
    if class_name.endswith("ForCausalLM") or "LMHead" in class_name:
        return True
    import transformers

    if hasattr(transformers, class_name):
        return class_name in _class_names()
    return not class_name.endswith(("Model", *(f"For{purpose}" for purpose in _PURPOSES)))


def text_entries(directory: Path) -> dict[str, Any]:
    """The entries of config.json for the half that writes text, with the defaults of its configuration class.

    `model_type` is the type of the text half; `tie_word_embeddings` comes from the whole model, which decides.

    Raises:
        ModelLoadError: transformers cannot read it.
    """
    config = read_config(directory)
    with quiet():
        text = config.get_text_config(decoder=True)
        entries: dict[str, Any] = text.to_dict()
    for name in _STANDARD_NAMES:  # some classes compute them, or call them otherwise
        if entries.get(name) is None:
            entries[name] = getattr(text, name, None)
    entries["tie_word_embeddings"] = getattr(config, "tie_word_embeddings", False)
    return entries


def media(config: Any) -> tuple[str, ...]:
    """The inputs other than text, such as images, of a model with this `transformers` configuration."""
    return tuple(dict.fromkeys(what for name, what in MEDIA_CONFIGS.items() if getattr(config, name, None) is not None))


def model_class(config: Any) -> Any:
    """The class of transformers that generates text with a configuration: the published one, else the class for the model type.

    Raises:
        ValueError: there is none.
    """
    import transformers

    for name in getattr(config, "architectures", None) or ():
        kind = getattr(transformers, name, None)
        if kind is not None and writes_text(name) and getattr(kind, "config_class", None) is type(config):
            return kind
    for mapping in _mappings():
        if type(config) in mapping:
            found = mapping[type(config)]
            return found[0] if isinstance(found, tuple) else found
    raise ValueError(f"transformers has no class that generates text for {config.model_type!r}")


def text_readers(reader: Any) -> dict[str, TextReader]:
    """A reader for each tensor of the text half that an open safetensors file has, by the name that a model of text alone gives it."""
    names = {}
    for name in reader.keys():  # noqa: SIM118 - the reader is not a mapping
        found = _TEXT_NAME.fullmatch(name)
        if found is not None:
            names["lm_head." + found["head"] if found["head"] else "model." + found["body"]] = name
    return dict.fromkeys(names, TextReader(reader, names))


class TextReader:
    """An open safetensors file whose tensors have other names.

    Args:
        names: the names in the file by the requested names.
    """

    def __init__(self, reader: Any, names: Mapping[str, str]) -> None:
        self._reader, self._names = reader, names

    def get_slice(self, name: str) -> Any:
        """As `get_slice` of the file."""
        return self._reader.get_slice(self._names[name])

    def get_tensor(self, name: str) -> Any:
        """As `get_tensor` of the file."""
        return self._reader.get_tensor(self._names[name])


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress progress bars and advice of `transformers`."""
    from transformers.utils import logging as library_logging

    had_bars, verbosity = library_logging.is_progress_bar_enabled(), library_logging.get_verbosity()
    library_logging.disable_progress_bar()
    library_logging.set_verbosity_error()
    try:
        yield
    finally:
        library_logging.set_verbosity(verbosity)
        if had_bars:
            library_logging.enable_progress_bar()


def _mappings() -> list[Any]:
    """The library's tables from configuration classes to classes that generate text."""
    from transformers.models.auto import modeling_auto

    names = ("CAUSAL_LM", "IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM")
    found = (getattr(modeling_auto, f"MODEL_FOR_{name}_MAPPING", None) for name in names)
    return [each for each in found if each is not None]


def _class_names() -> frozenset[str]:
    """The classes of transformers that generate text."""
    values = (value for mapping in _mappings() for value in mapping._model_mapping.values())
    return frozenset(name for value in values for name in (value if isinstance(value, tuple) else (value,)))


def _known_types() -> Any:
    from transformers import CONFIG_MAPPING

    return CONFIG_MAPPING


def _with_known_types(raw: dict[str, Any]) -> dict[str, Any]:
    """`raw` with the model type of its published class where transformers knows only the class; `raw` itself if it knows the type."""
    name = _published_class(raw)
    if raw.get("model_type") in _known_types() or name not in _class_names():
        return raw
    import transformers

    kind = getattr(transformers, str(name), None)
    if kind is None:
        return raw
    model_type = kind.config_class.model_type
    return {**{name: value for name, value in raw.items() if name != "auto_map"}, "model_type": model_type}


def _published_class(raw: dict[str, Any]) -> str | None:
    architectures = raw.get("architectures")
    return str(architectures[0]) if isinstance(architectures, list) and architectures else None


def _types(*entries: dict[str, Any]) -> list[Any]:
    return [each.get("model_type") for each in entries]


def _purpose(class_name: str) -> str:
    for suffix, purpose in _PURPOSES.items():
        if class_name.endswith(f"For{suffix}"):
            return purpose
    if class_name.endswith("Model"):
        return "it returns hidden states (an embedding model, or a model without its output layer)"
    return "it is not among the classes of transformers that continue a text (it may be an encoder-decoder)"


def _is_sentence_encoder(directory: Path) -> bool:
    """Whether sentence-transformers saved the model, for embeddings or scores."""
    try:
        modules = json.loads((directory / "modules.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    if not isinstance(modules, list):
        return False
    return any(isinstance(each, dict) and str(each.get("type")).startswith("sentence_transformers") for each in modules)


def first_line(error: BaseException) -> str:
    """The first line of the message of an exception from another library; its `repr` if it has none."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip() if lines else repr(error)
