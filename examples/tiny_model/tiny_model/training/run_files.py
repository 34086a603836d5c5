"""The files of a training: its state, the checkpoint that it writes, and checkpoints that it begins with.

Every file is written whole or not at all. A state knows its run, the checkpoint that this began with, its tokenizer and its seed, and
a checkpoint knows the run that wrote it, so that runs are not mixed.
"""

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.quantized.int8_rows import int8_config
from rtlang.model.loading.safetensors_weights import SafetensorsWeights
from tiny_model.training.batches import Encoder
from tiny_model.training.network import (
    Network,
    Shape,
    deepened,
    int8_state_dict_for_llama,
    llama_config,
    load_llama,
    state_dict_for_llama,
)
from tiny_model.training.optimizer import Optimizer

STATE_FILE, WEIGHTS_FILE, INDEX_FILE = "training.pt", "model.safetensors", "model.safetensors.index.json"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
# What tensors do not show; where one of these is another, the weights mean another model.
SAME_IN_CONFIG = (
    "model_type",
    "head_dim",
    "hidden_act",
    "num_attention_heads",
    "num_key_value_heads",
    "rms_norm_eps",
    "rope_parameters",
)


def put(path: Path, content: bytes) -> None:
    """Write a file whole or not at all.

    Raises:
        OSError: it cannot be written; names it.
    """
    target = path.resolve()  # of a link, the file itself
    new = target.with_name(target.name + ".new")
    try:
        with new.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(target)
    except OSError as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise OSError(error.errno, f"{path} cannot be written: {error.strerror}") from None


def check_output(directory: Path, run: str | None = None) -> None:
    """Refuse a folder that holds a checkpoint, unless `run` wrote it.

    Raises:
        ValueError: it does; or has the index of a checkpoint in several files, which readers would go by.
    """
    if (directory / INDEX_FILE).exists():
        raise ValueError(f"{directory / INDEX_FILE} belongs to another checkpoint; name another folder for --output")
    path = directory / WEIGHTS_FILE
    if not path.is_file():
        return
    try:
        with safetensors.safe_open(str(path), framework="pt") as file:
            written_by = (file.metadata() or {}).get("run", "")
    except SafetensorError:
        written_by = None
    if run is None or written_by != run:
        raise ValueError(f"{directory} holds a checkpoint already, of another run; name another folder for --output")


def write_checkpoint(network: Network, encoder: Encoder, directory: Path, run: str = "") -> None:
    """Write the model in int8 beside the tokenizer; `transformers` reads it where compressed-tensors is installed.

    Raises:
        ValueError: the directory holds another checkpoint than one of `run`.
        OSError: a file cannot be written; names it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    check_output(directory, run)
    config = llama_config(network.shape, encoder.eos_token_id, encoder.pad_token_id)
    generation = {"eos_token_id": encoder.eos_token_id, "pad_token_id": encoder.pad_token_id, "do_sample": False}
    metadata = {"format": "pt", **({"run": run} if run else {})}
    put(directory / WEIGHTS_FILE, safetensors.torch.save(int8_state_dict_for_llama(network), metadata))
    put(directory / "config.json", (json.dumps(config, indent=2) + "\n").encode())
    put(directory / "generation_config.json", (json.dumps(generation, indent=2) + "\n").encode())


@dataclass(slots=True)
class Progress:
    """How far a run is, and what it belongs to."""

    spent: float = 0.0  # seconds
    num_tokens: int = 0  # with padding
    start: str = ""  # the checkpoint whose weights it began with; "" is none
    tokenizer: str = ""  # SHA-256 of its tokenizer.json, in hexadecimal
    seed: int | None = None  # of its documents; None in states of before it was kept
    run: str = field(default_factory=lambda: uuid4().hex)  # "" in states of before it was kept


def write_state(path: Path, optimizer: Optimizer, progress: Progress) -> None:
    """Write what a resumed run needs; whoever kills the process finds this state or the one before.

    Raises:
        OSError: it cannot be written; names it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    content = BytesIO()
    torch.save({"optimizer": optimizer.state(), **asdict(progress)}, content)
    put(path, content.getvalue())


def read_state(path: Path) -> tuple[dict[str, Any], Progress]:
    """What `write_state` wrote: the optimizer's state, and the progress.

    Raises:
        ValueError: the file is another one; names it.
        OSError: it cannot be read.
    """
    try:
        content = torch.load(path, weights_only=True)
        return content.pop("optimizer"), Progress(**{"run": "", **content})
    except OSError:
        raise
    except Exception as error:  # of a damaged file, torch raises whatever comes up
        why = (str(error).splitlines() or [""])[0]
        raise ValueError(f"{path} is not what a training wrote: {type(error).__name__}: {why}") from None


def hash_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_folders(state: Path, output: Path, start: Path | None) -> None:
    """Refuse a run that would not go on with what is its own.

    Raises:
        ValueError: the state is of another run, or `output` holds another checkpoint; says so.
        OSError: a file cannot be read.
    """
    saved, tokenizer = state / STATE_FILE, output / "tokenizer.json"
    if saved.is_symlink() and not saved.exists():
        raise ValueError(f"{saved} is a link to a file that is not there")
    if not saved.exists():
        check_output(output)
        if start is None and tokenizer.exists():
            check_tokenizer(output)
        return
    _, progress = read_state(saved)
    if start is not None and progress.start != str(start.resolve()):
        began = f"with --start {progress.start}" if progress.start else "without --start"
        raise ValueError(f"{saved} holds a run that began {began}, not with {start}; name another folder for --state")
    if progress.start == str(output.resolve()):
        raise ValueError(f"{saved} holds a run that began with {output}; the checkpoint would be overwritten")
    if not tokenizer.exists() or hash_of(tokenizer) != progress.tokenizer:
        raise ValueError(f"{tokenizer} is not the tokenizer of the run in {saved}; name that run's --output")
    check_output(output, progress.run)
    check_tokenizer(output)


def check_tokenizer(folder: Path) -> None:
    """Refuse a folder without both files of a tokenizer of this model.

    Raises:
        ValueError: one is missing or another; names it.
    """
    Encoder(folder)
    if not (folder / TOKENIZER_FILES[1]).is_file():
        raise ValueError(f"{folder} has a tokenizer.json and no {TOKENIZER_FILES[1]}")


def float_weights(path: Path) -> dict[str, Tensor]:
    """All weights of a checkpoint in int8, as float32. Raises ModelLoadError if one cannot be read."""
    weights = SafetensorsWeights(path.parent, [path], int8_config())
    return {name: weights.tensor(name, torch.float32) for name in weights.names()}


def read_checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, bytes]]:
    """The weights of a checkpoint of this model in float32, by their names in it, and what its tokenizer's files hold.

    One of fewer layers is read as one of all that says the same (`deepened`).

    Raises:
        ValueError: a file cannot be read or is of another model; says so.
    """
    encoder, network = Encoder(folder), Network(Shape())
    try:
        config = json.loads((folder / "config.json").read_text())
        tokenizer_files = {name: (folder / name).read_bytes() for name in TOKENIZER_FILES}
        if not isinstance(config, dict):
            raise ValueError("its config.json holds no object")
        layers = config.get("num_hidden_layers")
        if type(layers) is not int or not 1 <= layers <= network.shape.num_layers:
            raise ValueError(
                f"its config.json has num_hidden_layers {layers!r}; 1 to {network.shape.num_layers} is possible"
            )
        state = float_weights(folder / WEIGHTS_FILE)
        load_llama(network, deepened(state, layers, network.shape.num_layers))
    except (OSError, ValueError, RecursionError, SafetensorError, ModelLoadError) as error:
        raise ValueError(f"{folder} cannot be gone on from: {error}") from None
    for key, value in llama_config(network.shape, encoder.eos_token_id, encoder.pad_token_id).items():
        if key in SAME_IN_CONFIG and config.get(key) != value:
            raise ValueError(f"{folder / 'config.json'} has {key} {config.get(key)!r}; {value!r} is needed")
    weights = state_dict_for_llama(network, torch.float32)
    for name, weight in weights.items():
        if not weight.isfinite().all():
            raise ValueError(f"{folder / WEIGHTS_FILE} has numbers in {name} that are not finite")
    return weights, tokenizer_files


def begin_from(start: Path, state: Path, output: Path, seed: int) -> None:
    """Make the state of a new run that goes on from a checkpoint's weights, and put the checkpoint into `output`.

    Raises:
        ValueError: a file of `start` cannot be read or is of another model, or `output` has another tokenizer; says so.
        OSError: a file cannot be written; names it.
    """
    weights, tokenizer_files = read_checkpoint(start)
    network = Network(Shape())
    load_llama(network, weights)
    tokenizer = output / "tokenizer.json"
    if tokenizer.exists() and tokenizer.read_bytes() != tokenizer_files["tokenizer.json"]:
        raise ValueError(f"{tokenizer} is not that of {start}; name another folder for --output")
    for name, content in tokenizer_files.items():
        put(output / name, content)
    progress = Progress(start=str(start.resolve()), tokenizer=hash_of(tokenizer), seed=seed)
    write_state(state / STATE_FILE, Optimizer(network), progress)
    write_checkpoint(network, Encoder(output), output, progress.run)
