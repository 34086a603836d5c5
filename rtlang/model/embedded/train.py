"""Train the embedded model on a CPU within a time budget.

    python -m rtlang.model.embedded.train --minutes 50 --state /some/folder --output /some/checkpoint

With `--start CHECKPOINT`, such as the folder of the weights in the package, training goes on from those weights.

The learning rate follows the share of the budget that is spent and ends at zero with it, so a busy machine shortens the
training instead of cutting it off. The loss counts every token of an answer, those of short ones more, and a few of the
prompt. Documents are batched by length with padding, so each stands at position 0 and sees nothing of another.
A step's microbatches are shared out among processes of one thread each, which draw their own documents; matrices this small
gain more from that than from threads.
"""

import argparse
import json
import logging
import math
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor, multiprocessing
from torch.nn import functional

from rtlang.model.embedded.corpus import END, PAD, SPECIAL_TOKENS, Piece, documents
from rtlang.model.embedded.network import (
    Network,
    Shape,
    causal_mask,
    int8_state_dict_for_llama,
    llama_config,
    load_llama,
)
from rtlang.model.embedded.optimizer import Optimizer
from rtlang.model.embedded.tokenizer_training import train_tokenizer
from rtlang.model.quantized import float_state

logger = logging.getLogger(__name__)

POOL_DOCUMENTS = 3072
MICROBATCH_TOKENS = 4096
MICROBATCHES = 2
PROMPT_LOSS_SHARE, PROMPT_LOSS_WEIGHT = 0.125, 0.1
PLAIN_ANSWER_TOKENS, MAX_ANSWER_WEIGHT = 32, 4.0
SPLIT_SHARE = 0.05
WARMUP, FLAT_UNTIL = 0.01, 0.35
STARTED_PEAK = 0.6  # of the rate, for weights that are trained already
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


class Encoder:
    """Documents to token ids and loss weights."""

    def __init__(self, directory: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        if (num_tokens := self._tokenizer.get_vocab_size()) > Shape().vocab_size:
            raise ValueError(f"the tokenizer has {num_tokens} tokens, at most {Shape().vocab_size} are allowed")
        self._special: dict[str, int] = {token: self._id_of(token) for token in SPECIAL_TOKENS}
        self.pad_token_id = self._special[PAD]
        self.eos_token_id = self._special[END]

    def _id_of(self, token: str) -> int:
        token_id: int | None = self._tokenizer.token_to_id(token)
        if token_id is None:
            raise ValueError(f"the tokenizer has no special token {token}")
        return token_id

    def encode(self, batch: list[list[Piece]], rng: random.Random) -> list[tuple[list[int], list[float]]]:
        """Token ids of each document and the weight of each token as a prediction target.

        A few texts are encoded in two parts, as the runtime encodes the parts of a program's prompt.
        """
        parts: list[str] = []
        counts: list[list[int]] = []
        for document in batch:
            counts.append([])
            for piece in document:
                cut = rng.randrange(len(piece.text)) if piece.text and rng.random() < SPLIT_SHARE else 0
                split = cut and not (piece.text[cut - 1].isalnum() and piece.text[cut].isalnum())
                texts = [piece.text[:cut], piece.text[cut:]] if split else [piece.text] if piece.text else []
                parts += texts
                counts[-1].append(len(texts))
        encoded = iter(self._tokenizer.encode_batch_fast(parts, add_special_tokens=False))
        result = []
        for document, piece_counts in zip(batch, counts, strict=True):
            token_ids: list[int] = []
            weights: list[float] = []
            for piece, count in zip(document, piece_counts, strict=True):
                if piece.special is not None:
                    token_ids.append(self._special[piece.special])
                    weights.append(
                        1.0 if piece.special == END and (piece.is_answer or document[0].special is None) else 0.0
                    )
                for _ in range(count):
                    ids = next(encoded).ids
                    token_ids += ids
                    if piece.is_answer:
                        weights += [1.0] * len(ids)
                    else:
                        weights += [PROMPT_LOSS_WEIGHT if rng.random() < PROMPT_LOSS_SHARE else 0.0 for _ in ids]
            boost = answer_weight(sum(weight == 1.0 for weight in weights))
            weights = [weight * boost for weight in weights]
            result.append((token_ids[: Shape().max_positions], weights[: Shape().max_positions]))
        return result


def answer_weight(num_answer_tokens: int) -> float:
    """Weight of each answer token of a document. A label or a sum is one or two tokens, and would drown among the records."""
    return min(MAX_ANSWER_WEIGHT, max(1.0, math.sqrt(PLAIN_ANSWER_TOKENS / max(1, num_answer_tokens))))


def microbatches(encoder: Encoder, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless token ids [B, L] and target weights [B, L], padded; documents of about one length stand together."""
    rng, stream = random.Random(seed), documents(seed)
    while True:
        pool = sorted(encoder.encode(list(islice(stream, POOL_DOCUMENTS)), rng), key=lambda document: len(document[0]))
        batches: list[list[tuple[list[int], list[float]]]] = [[]]
        for document in pool:
            length = padded(len(document[0]))
            if length * (len(batches[-1]) + 1) > MICROBATCH_TOKENS and batches[-1]:
                batches.append([])
            batches[-1].append(document)
        rng.shuffle(batches)
        for batch in batches:
            length = padded(len(batch[-1][0]))
            token_ids = torch.full((len(batch), length), encoder.pad_token_id)
            weights = torch.zeros(len(batch), length)
            for row, (ids, document_weights) in enumerate(batch):
                token_ids[row, : len(ids)] = torch.tensor(ids)
                weights[row, : len(ids)] = torch.tensor(document_weights)
            yield token_ids, weights


def padded(length: int) -> int:
    """The length in tokens, rounded up to a multiple of 16."""
    return -(-length // 16) * 16


def rate_at(progress: float, *, is_started: bool = False) -> float:
    """Share of the full learning rate after a share `progress` of the budget; lower, and never flat, for trained weights."""
    peak, flat_until = (STARTED_PEAK, WARMUP) if is_started else (1.0, FLAT_UNTIL)
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


def train(
    minutes: float, state: Path, output: Path, seed: int, num_processes: int = 1, start: Path | None = None
) -> None:
    """Train until the budget is spent; continues from `state` where an earlier run left off.

    Args:
        start: a checkpoint of this shape, whose weights and tokenizer a new run begins with.

    Raises:
        ValueError: `start` cannot be read, is of another shape or has an unfitting tokenizer; says so.
    """
    network = Network(Shape(), seed).bfloat16()
    if start is not None:
        weights = start / "model.safetensors"
        try:
            load_llama(network, float_state([weights], torch.float32))
        except (ValueError, SafetensorError) as error:
            raise ValueError(f"{weights} does not fit: {error}") from None
        for name in TOKENIZER_FILES:
            shutil.copyfile(start / name, output / name)
    elif not (output / "tokenizer.json").exists():
        train_tokenizer(output)
    encoder = Encoder(output)
    optimizer, spent, num_tokens = Optimizer(network), 0.0, 0
    saved = state / "training.pt"
    if saved.exists():
        content = torch.load(saved, weights_only=True)
        optimizer.restore(content["optimizer"])
        spent, num_tokens = content["spent"], content["num_tokens"]
    # A resumed run takes a new part of the corpus, since the stream cannot be entered in the middle.
    gradients = Gradients(network, output, seed * 1_000_003 + optimizer.num_steps, num_processes)
    network.compile(dynamic=True)
    logger.info(
        "%s, %d parameters", asdict(network.shape), sum(parameter.numel() for parameter in network.parameters())
    )
    last, saved_at, running = time.monotonic(), spent, 0.0
    while spent < minutes * 60:
        counts = gradients.step()
        torch.set_num_threads(num_processes)  # the helpers wait meanwhile
        norm = optimizer.step(rate_at(spent / (minutes * 60), is_started=start is not None))
        torch.set_num_threads(1)
        num_tokens += counts.num_tokens
        now = time.monotonic()
        spent, last = spent + now - last, now
        loss = counts.loss_sum / counts.weight
        running = loss if not running else 0.98 * running + 0.02 * loss
        if optimizer.num_steps % 50 == 0:
            logger.info(
                "step %d  %.1f min  %.2f Mtokens  loss %.4f  norm %.2f",
                optimizer.num_steps,
                spent / 60,
                num_tokens / 1e6,
                running,
                norm,
            )
        if spent - saved_at > 180 or spent >= minutes * 60:
            saved_at = spent
            write_checkpoint(network, encoder, output)
            state.mkdir(parents=True, exist_ok=True)
            torch.save(
                {"optimizer": optimizer.state(), "spent": spent, "num_tokens": num_tokens}, saved.with_suffix(".new")
            )
            saved.with_suffix(".new").replace(saved)
    logger.info("done: %d steps, %.2f Mtokens, loss %.4f", optimizer.num_steps, num_tokens / 1e6, running)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command; without `arguments`, with those of the process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--minutes", type=float, default=50.0, help="time budget; the learning rate reaches zero at its end"
    )
    parser.add_argument("--state", type=Path, required=True, help="folder for what a resumed run needs")
    parser.add_argument("--output", type=Path, required=True, help="checkpoint folder")
    parser.add_argument("--start", type=Path, help="checkpoint of this shape to go on from; the rate begins lower")
    parser.add_argument("--seed", type=int, default=1)
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
        for name in ("model.safetensors", *TOKENIZER_FILES):
            if not (given.start / name).is_file():
                parser.error(f"--start {given.start} has no {name}")
        if given.start.resolve() == given.output.resolve():
            parser.error(f"--start and --output are both {given.output}; the checkpoint would be overwritten")
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.set_num_threads(1)
    try:
        train(given.minutes, given.state, given.output, given.seed, given.processes, given.start)
    except ValueError as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        parser.exit(130, f"interrupted; the same command goes on from what was last saved in {given.state}\n")


if __name__ == "__main__":
    main()
