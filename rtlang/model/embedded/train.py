"""Train the embedded model on a CPU within a time budget.

    python -m rtlang.model.embedded.train --minutes 50 --state /some/folder --output /some/checkpoint

With `--start CHECKPOINT`, such as the folder of the weights in the package, and a `--seed` that it was not trained with, training
goes on from those weights.

The learning rate follows the share of the budget that is spent and ends at zero with it, so a busy machine shortens the
training instead of cutting it off.
A step's microbatches are shared out among processes of one thread each, which draw their own documents; matrices this small
gain more from that than from threads.
"""

import argparse
import hashlib
import json
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, multiprocessing
from torch.nn import functional

from rtlang.model.embedded.batches import Encoder, microbatches
from rtlang.model.embedded.network import (
    Network,
    Shape,
    causal_mask,
    int8_state_dict_for_llama,
    llama_config,
    load_llama,
    state_dict_for_llama,
)
from rtlang.model.embedded.optimizer import Optimizer
from rtlang.model.embedded.tokenizer_training import train_tokenizer
from rtlang.model.quantized import float_state

logger = logging.getLogger(__name__)

MICROBATCHES = 2
WARMUP, FLAT_UNTIL = 0.01, 0.35
FROM_CHECKPOINT_PEAK = 0.6  # of the rate, for weights that are trained already
STATE_FILE = "training.pt"
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


def rate_at(progress: float, *, from_checkpoint: bool = False) -> float:
    """Share of the full learning rate after a share `progress` of the budget; lower, and never flat, for trained weights."""
    peak, flat_until = (FROM_CHECKPOINT_PEAK, WARMUP) if from_checkpoint else (1.0, FLAT_UNTIL)
    if progress < WARMUP:
        return peak * (0.05 + 0.95 * progress / WARMUP)
    return peak if progress < flat_until else peak * max(0.0, (1 - progress) / (1 - flat_until))


def loss_of(network: Network, token_ids: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Summed weighted cross entropy of the weighted targets, and the summed weight."""
    targets, target_weights = token_ids[:, 1:], weights[:, 1:]
    chosen = target_weights > 0
    mask = causal_mask(token_ids.shape[1], network.q.dtype)
    hidden: Tensor = network(token_ids, mask)[:, :-1][chosen]  # [N, hidden]
    losses = functional.cross_entropy(network.logits(hidden).float(), targets[chosen], reduction="none")
    return (losses * target_weights[chosen]).sum(), target_weights.sum()


def write_checkpoint(network: Network, encoder: Encoder, directory: Path) -> None:
    """Write the model in int8 beside the tokenizer; `transformers` reads it where compressed-tensors is installed."""
    directory.mkdir(parents=True, exist_ok=True)
    save_file(int8_state_dict_for_llama(network), str(directory / "model.safetensors"), metadata={"format": "pt"})
    config = llama_config(network.shape, encoder.eos_token_id, encoder.pad_token_id)
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    generation = {"eos_token_id": encoder.eos_token_id, "pad_token_id": encoder.pad_token_id, "do_sample": False}
    (directory / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")


class Counts(NamedTuple):
    """What the gradients of some microbatches stand for."""

    loss_sum: float
    weight: float
    num_tokens: int


def add_gradients(network: Network, batches: Iterator[tuple[Tensor, Tensor]], count: int) -> Counts:
    """Add the gradients of the summed losses of `count` microbatches to those of the network."""
    loss_sum, weight, num_tokens = 0.0, 0.0, 0
    for token_ids, weights in islice(batches, count):
        loss, total = loss_of(network, token_ids, weights)
        torch.autograd.backward(loss)
        loss_sum, weight, num_tokens = loss_sum + loss.item(), weight + total.item(), num_tokens + token_ids.numel()
    return Counts(loss_sum, weight, num_tokens)


def work(network: Network, gradients: dict[str, Tensor], output: Path, seed: int, count: int, pipe: Connection) -> None:
    """A further process: gradients of its own microbatches, whenever the pipe asks for them, until it is closed.

    Weights and `gradients` lie in shared memory; the answer on the pipe is `Counts`.
    """
    torch.set_num_threads(1)
    network.compile(dynamic=True)
    try:
        batches = microbatches(Encoder(output), seed)
        while pipe.recv():
            counts = add_gradients(network, batches, count)
            for name, parameter in network.named_parameters():
                if parameter.grad is not None:
                    gradients[name].copy_(parameter.grad)
                parameter.grad = None
            pipe.send(counts)
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return


class Gradients:
    """The gradients of a step, from this process and its helpers. Owns the helpers, which end with it."""

    def __init__(self, network: Network, output: Path, seed: int, num_processes: int) -> None:
        self._network, self._count = network, max(1, MICROBATCHES // num_processes)
        self._helpers: list[tuple[Connection, dict[str, Tensor]]] = []
        network.share_memory()
        context = multiprocessing.get_context("spawn")
        for index in range(1, num_processes):
            shared = {name: torch.zeros_like(weight) for name, weight in network.state_dict().items()}
            for gradient in shared.values():
                gradient.share_memory_()  # type: ignore[no-untyped-call]
            pipe, its_end = context.Pipe()
            given = (network, shared, output, seed + 500_009 * index, self._count, its_end)
            context.Process(target=work, args=given, daemon=True).start()
            its_end.close()
            self._helpers.append((pipe, shared))
        self._batches = microbatches(Encoder(output), seed)

    def step(self) -> Counts:
        """The gradients of the mean loss of one step, left at the network's parameters."""
        for pipe, _ in self._helpers:
            pipe.send(True)
        counts = [add_gradients(self._network, self._batches, self._count)]
        for pipe, _ in self._helpers:
            try:
                counts.append(pipe.recv())
            except EOFError:
                raise RuntimeError("a training process ended; what it said stands above") from None
        total = Counts(*(sum(column) for column in zip(*counts, strict=True)))
        for name, parameter in self._network.named_parameters():
            if parameter.grad is not None:
                for _, shared in self._helpers:
                    parameter.grad.add_(shared[name])
                parameter.grad.div_(total.weight)
        return total


@dataclass(slots=True)
class Progress:
    """How far a run is, and what it belongs to."""

    spent: float = 0.0  # seconds
    num_tokens: int = 0  # with padding
    start: str = ""  # the checkpoint whose weights it began with; "" is none
    tokenizer: str = ""  # SHA-256 of its tokenizer.json, in hexadecimal


def write_state(path: Path, optimizer: Optimizer, progress: Progress) -> None:
    """Write what a resumed run needs; whoever kills the process finds this state or the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"optimizer": optimizer.state(), **asdict(progress)}, path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)


def read_state(path: Path) -> tuple[dict[str, Any], Progress]:
    """What `write_state` wrote: the optimizer's state, and the progress.

    Raises:
        ValueError: the file is another one; names it.
    """
    try:
        content = torch.load(path, weights_only=True)
        return content.pop("optimizer"), Progress(**content)
    except (OSError, EOFError, RuntimeError, UnpicklingError, AttributeError, KeyError, TypeError) as error:
        why = (str(error).splitlines() or [""])[0]
        raise ValueError(f"{path} is not what a training wrote: {type(error).__name__}: {why}") from None


def hash_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_state(state: Path, output: Path, start: Path | None) -> None:
    """Whether the run in `state`, where there is one, belongs to `output` and began with `start`, if that is given.

    Raises:
        ValueError: it does not; says why.
    """
    saved, tokenizer = state / STATE_FILE, output / "tokenizer.json"
    if not saved.exists():
        return
    _, progress = read_state(saved)
    if start is not None and progress.start != str(start.resolve()):
        began = f"with --start {progress.start}" if progress.start else "without --start"
        raise ValueError(f"{saved} holds a run that began {began}, not with {start}; name another folder for --state")
    if not tokenizer.exists() or hash_of(tokenizer) != progress.tokenizer:
        raise ValueError(f"{tokenizer} is not the tokenizer of the run in {saved}; name that run's --output")


def read_checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, bytes]]:
    """The weights of a checkpoint of this model in float32, by their names in it, and what its tokenizer's files hold.

    Raises:
        ValueError: a file cannot be read or is of another model; says so.
    """
    encoder, network = Encoder(folder), Network(Shape())
    try:
        config = json.loads((folder / "config.json").read_text())
        tokenizer_files = {name: (folder / name).read_bytes() for name in TOKENIZER_FILES}
        load_llama(network, float_state([folder / "model.safetensors"], torch.float32))
    except (OSError, ValueError, SafetensorError) as error:
        raise ValueError(f"{folder} cannot be gone on from: {error}") from None
    if not isinstance(config, dict):
        raise ValueError(f"{folder / 'config.json'} holds no object")
    for key, value in llama_config(network.shape, encoder.eos_token_id, encoder.pad_token_id).items():
        if key in SAME_IN_CONFIG and config.get(key) != value:
            raise ValueError(f"{folder / 'config.json'} has {key} {config.get(key)!r}; {value!r} is needed")
    return state_dict_for_llama(network, torch.float32), tokenizer_files


def begin_from(start: Path, state: Path, output: Path) -> None:
    """Make the state of a new run that goes on from a checkpoint's weights, and put the checkpoint into `output`.

    Raises:
        ValueError: a file of `start` cannot be read or is of another model, or `output` has another tokenizer; says so.
    """
    weights, tokenizer_files = read_checkpoint(start)
    network = Network(Shape())
    load_llama(network, weights)
    tokenizer = output / "tokenizer.json"
    if tokenizer.exists() and tokenizer.read_bytes() != tokenizer_files["tokenizer.json"]:
        raise ValueError(f"{tokenizer} is not that of {start}; name another folder for --output")
    for name, content in tokenizer_files.items():
        (output / name).write_bytes(content)
    write_checkpoint(network, Encoder(output), output)
    write_state(
        state / STATE_FILE, Optimizer(network), Progress(start=str(start.resolve()), tokenizer=hash_of(tokenizer))
    )


def train(minutes: float, state: Path, output: Path, seed: int, num_processes: int = 1) -> None:
    """Train until the budget is spent; continues from `state` where an earlier run, or `begin_from`, left off."""
    if not (output / "tokenizer.json").exists():
        train_tokenizer(output)
    encoder, network = Encoder(output), Network(Shape(), seed).bfloat16()
    optimizer, progress = Optimizer(network), Progress(tokenizer=hash_of(output / "tokenizer.json"))
    saved = state / STATE_FILE
    if saved.exists():
        optimizer_state, progress = read_state(saved)
        optimizer.restore(optimizer_state)
    # A resumed run takes a new part of the corpus, since the stream cannot be entered in the middle.
    gradients = Gradients(network, output, seed * 1_000_003 + optimizer.num_steps, num_processes)
    network.compile(dynamic=True)
    logger.info(
        "%s, %d parameters", asdict(network.shape), sum(parameter.numel() for parameter in network.parameters())
    )
    last, saved_at, running = time.monotonic(), progress.spent, 0.0
    while progress.spent < minutes * 60:
        counts = gradients.step()
        with threads(num_processes):  # the helpers wait meanwhile
            norm = optimizer.step(rate_at(progress.spent / (minutes * 60), from_checkpoint=bool(progress.start)))
        progress.num_tokens += counts.num_tokens
        now = time.monotonic()
        progress.spent, last = progress.spent + now - last, now
        loss = counts.loss_sum / counts.weight
        running = loss if not running else 0.98 * running + 0.02 * loss
        if optimizer.num_steps % 50 == 0:
            logger.info(
                "step %d  %.1f min  %.2f Mtokens  loss %.4f  norm %.2f",
                optimizer.num_steps,
                progress.spent / 60,
                progress.num_tokens / 1e6,
                running,
                norm,
            )
        if progress.spent - saved_at > 180 or progress.spent >= minutes * 60:
            saved_at = progress.spent
            write_checkpoint(network, encoder, output)
            write_state(saved, optimizer, progress)
    logger.info("done: %d steps, %.2f Mtokens, loss %.4f", optimizer.num_steps, progress.num_tokens / 1e6, running)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch use `count` threads inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command; without `arguments`, with those of the process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--minutes", type=float, default=50.0, help="time budget; the learning rate reaches zero at its end"
    )
    parser.add_argument("--state", type=Path, required=True, help="folder for what a resumed run needs")
    parser.add_argument("--output", type=Path, required=True, help="checkpoint folder")
    parser.add_argument(
        "--start", type=Path, help="checkpoint of this shape to go on from; the rate peaks lower and falls at once"
    )
    parser.add_argument(
        "--seed",
        type=int,
        help="of the documents, 1 by default; with --start it must be given, and be one that the checkpoint was not trained with",
    )
    parser.add_argument("--processes", type=int, default=1, help="processes of one thread each; one for each free core")
    given = parser.parse_args(arguments)
    if given.processes < 1 or not given.minutes > 0:
        parser.error("--processes is at least 1, --minutes more than 0")
    for folder in (given.state, given.output):  # found out now, not at the first save
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / ".writable").touch()
            (folder / ".writable").unlink()
        except OSError as error:
            parser.error(f"{folder} cannot be written to: {error}")
    if given.start is not None:
        if given.start.resolve() == given.output.resolve():
            parser.error(f"--start and --output are both {given.output}; the checkpoint would be overwritten")
        if given.seed is None:
            parser.error("--start needs a --seed that the checkpoint was not trained with")
    try:
        check_state(given.state, given.output, given.start)
        if given.start is not None and not (given.state / STATE_FILE).exists():
            begin_from(given.start, given.state, given.output)
    except ValueError as error:
        parser.error(str(error))
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        with threads(1):
            train(given.minutes, given.state, given.output, 1 if given.seed is None else given.seed, given.processes)
    except KeyboardInterrupt:
        parser.exit(130, f"interrupted; the same command goes on from what was last saved in {given.state}\n")


if __name__ == "__main__":
    main()
