"""The training documents as batches of token ids with weights.

The loss counts every token of an answer, those of short ones more, and a few of the prompt. Documents are batched by length
with padding, so each stands at position 0 and sees nothing of another.
"""

import math
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

from tiny_model.corpus.documents import END, PAD, SPECIAL_TOKENS, Piece, documents
from tiny_model.training.network import Shape

POOL_DOCUMENTS = 3072
MICROBATCH_TOKENS = 4096
PROMPT_LOSS_SHARE, PROMPT_LOSS_WEIGHT = 0.125, 0.1
PLAIN_ANSWER_TOKENS, MAX_ANSWER_WEIGHT = 32, 4.0
SPLIT_SHARE = 0.05


class Encoder:
    """Documents to token ids and loss weights."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "tokenizer.json"
        try:
            self._tokenizer = Tokenizer.from_file(str(self._path))
        except Exception as error:  # it raises nothing narrower
            raise ValueError(f"{self._path} cannot be read: {error}") from None
        if (last := max(self._tokenizer.get_vocab().values(), default=0)) >= Shape().vocab_size:
            raise ValueError(f"{self._path} has a token id {last}, at most {Shape().vocab_size - 1} is allowed")
        self._special: dict[str, int] = {token: self._id_of(token) for token in SPECIAL_TOKENS}
        self.pad_token_id = self._special[PAD]
        self.eos_token_id = self._special[END]

    def _id_of(self, token: str) -> int:
        token_id: int | None = self._tokenizer.token_to_id(token)
        if token_id is None:
            raise ValueError(f"{self._path} has no special token {token}")
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
