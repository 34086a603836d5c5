"""Train the embedded model on a CPU within a time budget.

    python -m tiny_model.training.train --minutes 50 --state /some/folder --output /some/checkpoint

With `--start CHECKPOINT`, such as the folder of the weights in the package, and a `--seed` that it was not trained with, training
goes on from those weights. A checkpoint of fewer layers gets new ones, which add nothing at first.

The learning rate follows the share of the budget that is spent and ends at zero with it, so a busy machine shortens the
training instead of cutting it off.
A step's microbatches are shared out among processes of one thread each, which draw their own documents; matrices this small
gain more from that than from threads.
"""

import argparse
import logging
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

import torch
from filelock import FileLock, Timeout
from torch import Tensor, multiprocessing
from torch.nn import functional

from tiny_model.training.batches import Encoder, microbatches
from tiny_model.training.network import Network, Shape, causal_mask
from tiny_model.training.optimizer import Optimizer
from tiny_model.training.run_files import (
    STATE_FILE,
    Progress,
    begin_from,
    check_folders,
    hash_of,
    read_state,
    write_checkpoint,
    write_state,
)
from tiny_model.training.tokenizer_training import train_tokenizer

logger = logging.getLogger(__name__)

MICROBATCHES = 2
WARMUP, FLAT_UNTIL = 0.01, 0.35
FROM_CHECKPOINT_PEAK = 0.6  # of the rate, for weights that are trained already
MAX_MINUTES, MAX_SEED, DEFAULT_SEED = 100_000, 2**40, 1


class TrainingError(Exception):
    """A training cannot go on. The message says why; what was saved last is kept."""


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
        """The gradients of the mean loss of one step, left at the network's parameters.

        Raises:
            TrainingError: a helper has ended.
        """
        try:
            for pipe, _ in self._helpers:
                pipe.send(True)
            counts = [add_gradients(self._network, self._batches, self._count)]
            counts += [pipe.recv() for pipe, _ in self._helpers]
        except (EOFError, ConnectionError):
            raise TrainingError("a further process of the training ended; what it said stands above") from None
        total = Counts(*(sum(column) for column in zip(*counts, strict=True)))
        for name, parameter in self._network.named_parameters():
            if parameter.grad is not None:
                for _, shared in self._helpers:
                    parameter.grad.add_(shared[name])
                parameter.grad.div_(total.weight)
        return total


def train(minutes: float, state: Path, output: Path, seed: int | None = None, num_processes: int = 1) -> None:
    """Train until the budget is spent; continues from `state` where an earlier run, or `begin_from`, left off.

    Without a seed, documents are drawn by that of the run in `state`.

    Raises:
        TrainingError: the state is of another model, the loss is no longer finite, a further process has ended, or another run has
            written to `output`.
        OSError: a file cannot be written; names it.
    """
    if not (output / "tokenizer.json").exists():
        train_tokenizer(output)
    encoder, network = Encoder(output), Network(Shape(), DEFAULT_SEED if seed is None else seed).bfloat16()
    optimizer = Optimizer(network)
    progress = Progress(tokenizer=hash_of(output / "tokenizer.json"), seed=DEFAULT_SEED)
    saved = state / STATE_FILE
    if saved.exists():
        optimizer_state, progress = read_state(saved)
        try:
            optimizer.restore(optimizer_state)
        except (KeyError, RuntimeError) as error:
            raise TrainingError(f"{saved} is of a model of another shape: {error}") from None
    if progress.spent >= minutes * 60:
        save_checkpoint(network, encoder, output, progress)
        logger.info("the budget is spent already: %.1f minutes; the checkpoint is written again", progress.spent / 60)
        return
    if seed is not None:
        progress.seed = seed
    if progress.seed is None:
        raise TrainingError(f"{saved} was written before states kept their seed; name it by --seed")
    # A resumed run takes a new part of the corpus, since the stream cannot be entered in the middle.
    gradients = Gradients(network, output, progress.seed * 1_000_003 + optimizer.num_steps, num_processes)
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
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise TrainingError(f"loss {loss} and norm {norm} at step {optimizer.num_steps}; the last state is kept")
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
            write_state(saved, optimizer, progress)  # first: from it, the checkpoint can be written again
            save_checkpoint(network, encoder, output, progress)
    logger.info("done: %d steps, %.2f Mtokens, loss %.4f", optimizer.num_steps, progress.num_tokens / 1e6, running)


def save_checkpoint(network: Network, encoder: Encoder, output: Path, progress: Progress) -> None:
    """Write the checkpoint of a run.

    Raises:
        TrainingError: `output` holds one of another run by now.
        OSError: a file cannot be written; names it.
    """
    try:
        write_checkpoint(network, encoder, output, progress.run)
    except ValueError as error:
        raise TrainingError(str(error)) from None


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
        "--start",
        type=Path,
        help="checkpoint of this shape, or of fewer layers, to go on from; the rate peaks lower and falls at once",
    )
    parser.add_argument(
        "--seed",
        type=int,
        help="of the documents, 1 by default or that of the run in --state; with --start it must be given, and be one that the "
        "checkpoint was not trained with",
    )
    parser.add_argument("--processes", type=int, default=1, help="processes of one thread each; one for each free core")
    given = parser.parse_args(arguments)
    if given.processes < 1 or not 0 < given.minutes <= MAX_MINUTES:
        parser.error(f"--processes is at least 1, --minutes more than 0 and at most {MAX_MINUTES}")
    if given.seed is not None and not 0 <= given.seed <= MAX_SEED:
        parser.error(f"--seed is from 0 to {MAX_SEED}")
    for folder in (given.state, given.output):  # found out now, not at the first save
        try:
            folder.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=folder).close()
        except OSError as error:
            parser.error(f"{folder} cannot be written to: {error}")
    if given.start is not None:
        if given.start.resolve() == given.output.resolve():
            parser.error(f"--start and --output are both {given.output}; the checkpoint would be overwritten")
        if given.seed is None:
            parser.error("--start needs a --seed that the checkpoint was not trained with")
    try:
        lock = FileLock(given.state / "training.lock", timeout=0).acquire()
    except Timeout:
        parser.error(f"--state {given.state} is in use by another training")
    try:
        with lock:
            prepare_folders(parser, given)
            logging.basicConfig(level=logging.INFO, format="%(message)s")
            with threads(1):
                train(given.minutes, given.state, given.output, given.seed, given.processes)
    except (TrainingError, OSError) as error:
        parser.exit(1, f"{error}\n")
    except KeyboardInterrupt:
        parser.exit(130, f"interrupted; the same command goes on from what was last saved in {given.state}\n")


def prepare_folders(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """Check the folders, and put the checkpoint that a new run begins with into them."""
    try:
        check_folders(given.state, given.output, given.start)
        if given.start is not None and not (given.state / STATE_FILE).exists():
            begin_from(given.start, given.state, given.output, given.seed)
    except (ValueError, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
