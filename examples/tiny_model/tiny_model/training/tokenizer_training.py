"""The tokenizer of the embedded model: byte-level BPE with 2,048 tokens.

Letters, digits and everything between them are split before merging: a word never carries the space before it, and every
digit stands alone. So a name has the same tokens in a sentence and between the quotes of a JSON string, which makes copying
easy to learn for a small model, and a prompt that ends in a space is no trap.
"""

import json
from itertools import islice
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from tiny_model.corpus.documents import CHAT_TEMPLATE, END, PAD, SPECIAL_TOKENS, documents
from tiny_model.training.run_files import put

VOCAB_SIZE = 2048
SPLIT = r"\p{L}+|\p{N}|[^\p{L}\p{N}]+"
TRAINING_SEED = 7_001
NUM_TRAINING_DOCUMENTS = 40_000


def train_tokenizer(directory: Path) -> None:
    """Learn the merges from the corpus and write `tokenizer.json` and `tokenizer_config.json` into the directory."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = (piece.text for document in islice(documents(TRAINING_SEED), NUM_TRAINING_DOCUMENTS) for piece in document)
    tokenizer.train_from_iterator(texts, trainer)
    directory.mkdir(parents=True, exist_ok=True)
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": None,
        "eos_token": END,
        "pad_token": PAD,
        "additional_special_tokens": [token for token in SPECIAL_TOKENS if token not in (END, PAD)],
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 1024,
        "chat_template": CHAT_TEMPLATE,
    }
    put(directory / "tokenizer_config.json", (json.dumps(settings, indent=2) + "\n").encode())
    put(directory / "tokenizer.json", tokenizer.to_str(pretty=True).encode())  # last: where it is, both are
