"""Random GBNF grammars against llama.cpp's: `python -m rtlang_grammars_bench.gbnf_fuzz --grammars 2000 [--files FOLDER]`.

Texts are derived from each grammar and changed at random; both sides say whether they are complete. For the GBNF files of a folder the
texts are random walks over our masks, and these with changes. Needs `llama-cpp-python` and `gguf`: a model without weights, whose tokens
are bytes, is written to a temporary file. A difference is printed with its grammar, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars_bench.grammar_texts import random_walks
from rtlang_grammars_bench.lark_fuzz import accepts, byte_backend

_FIRST_BYTE, _END = 3, 2
_CLASSES = {
    "[a-c]": "abc",
    "[0-9]": "0123456789",
    "[^a\\n]": "bc1 é-",
    "[é-ü]": "éêü",
    '["\\\\-]': '"\\-',
    "[\\x41-B]": "AB",
}
_LITERALS = {'"a"': "a", '"ab"': "ab", '"é"': "é", '"1"': "1", '"\\""': '"', '"\\n"': "\n", '"c b"': "c b"}
_REPEATS = {
    "": (1, 1),
    "?": (0, 1),
    "*": (0, 3),
    "+": (1, 3),
    "{2}": (2, 2),
    "{1,3}": (1, 3),
    "{2,}": (2, 4),
    "{0,2}": (0, 2),
}
_NUM_TEXTS = 25
_UNREAD = re.compile("[\\0\x80-\xbf\u2000-\u20ff]")
"""llama.cpp's strings end at a null character, and it refuses the first byte of a character where a negated class (`[^\\x85\\u2028]`)
excludes another one that begins with this byte."""

_Part: TypeAlias = tuple[str, Any, str]
"""What it is (`class`, `literal`, `rule` or `group`), its source or alternatives, and how often it is repeated."""

_Rule: TypeAlias = list[list[_Part]]


def random_rules(rng: random.Random) -> dict[str, _Rule]:
    """Rules without left recursion: a rule names later ones, or any behind a literal."""
    names = ["root", "x", "y", "z"][: rng.randint(1, 4)]
    return {name: _alternatives(rng, names, index, 2) for index, name in enumerate(names)}


def _alternatives(rng: random.Random, names: list[str], index: int, depth: int) -> _Rule:
    found = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        parts: list[_Part] = []
        is_guarded = False
        for _ in range(rng.randint(0 if rng.random() < 0.1 else 1, 3)):
            kind = rng.choice(["class", "literal", "literal", "rule", "group"])
            repeat = rng.choice(["", "", "", *_REPEATS])
            later = names[index + 1 :]
            if kind == "rule" and (is_guarded or later):
                parts.append(("rule", rng.choice(names if is_guarded else later), "" if is_guarded else repeat))
            elif kind == "group" and depth:
                parts.append(
                    ("group", _alternatives(rng, names, len(names) if not is_guarded else index, depth - 1), repeat)
                )
            elif kind == "class":
                parts.append(("class", rng.choice(list(_CLASSES)), repeat))
            else:
                parts.append(("literal", rng.choice(list(_LITERALS)), repeat))
                is_guarded |= _REPEATS[repeat][0] > 0
        found.append(parts)
    return found


def source_of(rules: dict[str, _Rule]) -> str:
    """The grammar as text."""

    def text(rule: _Rule) -> str:
        return " | ".join(
            " ".join(
                f"({text(what)}){repeat}" if kind == "group" else f"{what}{repeat}" for kind, what, repeat in parts
            )
            or '""'
            for parts in rule
        )

    return "".join(f"{name} ::= {text(rule)}\n" for name, rule in rules.items())


def derived(rng: random.Random, rules: dict[str, _Rule], rule: _Rule, fuel: list[int]) -> str:
    """A text of a rule; less and less of it as the fuel runs out."""
    parts = min(rule, key=len) if fuel[0] <= 0 else rng.choice(rule)
    found = ""
    for kind, what, repeat in parts:
        low, high = _REPEATS[repeat]
        for _ in range(low if fuel[0] <= 0 else rng.randint(low, high)):
            fuel[0] -= 1
            if fuel[0] < -60:
                return found
            if kind == "class":
                found += rng.choice(_CLASSES[what])
            elif kind == "literal":
                found += _LITERALS[what]
            else:
                found += derived(rng, rules, rules[what] if kind == "rule" else what, fuel)
    return found


def random_texts(rng: random.Random, rules: dict[str, _Rule]) -> list[str]:
    """Texts of the grammar, half of them changed at one place."""
    texts = []
    for _ in range(_NUM_TEXTS):
        text = derived(rng, rules, rules["root"], [12])
        if rng.random() < 0.5:
            text = _changed(rng, text)
        texts.append(text[:40])
    return texts


def file_cases(folder: Path, backend: RtlangBackend) -> Iterator[tuple[str, str, list[str]]]:
    """The GBNF files of a folder, with random walks over our masks, and with these changed at one place."""
    for path in sorted(folder.glob("*.gbnf")):
        source, rng = path.read_text(encoding="utf-8"), random.Random(path.name)
        grammar = backend.compile(Constraint(ConstraintKind.GBNF, source))
        walks = [text for text in random_walks(grammar, _NUM_TEXTS) if not _UNREAD.search(text)]
        yield path.name, source, [*walks, *(_changed(rng, text) for text in walks)]


def _changed(rng: random.Random, text: str) -> str:
    at = rng.randint(0, len(text))
    return text[:at] + rng.choice(["", "a", "b", "1", "é", '"', " "]) + text[at + rng.randint(0, 1) :]


class LlamaGrammars:
    """llama.cpp's grammars over a vocabulary of bytes."""

    def __init__(self) -> None:
        """Write and load a model that has a vocabulary only.

        Raises:
            ImportError: `llama-cpp-python` or `gguf` is not installed.
        """
        import gguf
        import llama_cpp

        self._library = llama_cpp
        self._quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(self._quiet, ctypes.c_void_p(0))
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "bytes.gguf")
            writer = gguf.GGUFWriter(path, "llama")
            tokens = [b"<unk>", b"<s>", b"</s>", *(b"<0x%02X>" % byte for byte in range(256))]
            writer.add_tokenizer_model("llama")
            writer.add_token_list(tokens)
            writer.add_token_scores([0.0] * len(tokens))
            writer.add_token_types([2, 3, 3, *[6] * 256])
            writer.add_bos_token_id(1)
            writer.add_eos_token_id(_END)
            writer.add_unk_token_id(0)
            for name in ("context_length", "embedding_length", "block_count", "feed_forward_length", "head_count"):
                getattr(writer, f"add_{name}")(8)
            writer.add_layer_norm_rms_eps(1e-5)
            writer.add_vocab_size(len(tokens))
            writer.add_rope_dimension_count(1)
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.close()
            parameters = llama_cpp.llama_model_default_params()
            parameters.vocab_only = True
            self._model = llama_cpp.llama_model_load_from_file(path.encode(), parameters)
        self._vocabulary = llama_cpp.llama_model_get_vocab(self._model)

    def verdicts(self, source: str, texts: list[str]) -> list[bool] | None:
        """Whether each text is complete; None if llama.cpp refuses the grammar."""
        with _no_stderr():
            found = [self._accepts(source, text) for text in texts]
        return None if None in found else [bool(each) for each in found]

    def _accepts(self, source: str, text: str) -> bool | None:
        library = self._library
        sampler = library.llama_sampler_init_grammar(self._vocabulary, source.encode(), b"root")
        if not sampler:
            return None

        def allows(token: int) -> bool:
            data = (library.llama_token_data * 1)()
            data[0].id, data[0].logit = token, 1.0
            array = library.llama_token_data_array(data=data, size=1, selected=-1, sorted=False)
            library.llama_sampler_apply(sampler, ctypes.byref(array))
            return bool(data[0].logit > -1e30)

        try:
            for byte in text.encode():
                if not allows(_FIRST_BYTE + byte):
                    return False
                library.llama_sampler_accept(sampler, _FIRST_BYTE + byte)
            return allows(_END)
        finally:
            library.llama_sampler_free(sampler)


@contextlib.contextmanager
def _no_stderr() -> Iterator[None]:
    """Drop what native code writes: llama.cpp prints every grammar it refuses."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def main(arguments: list[str] | None = None) -> int:
    """Print differences and counts; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grammars", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--files", type=Path, help="folder of GBNF files to be compared, too")
    options = parser.parse_args(arguments)
    llama, backend, counts = LlamaGrammars(), byte_backend(), Counter[str]()

    def cases() -> Iterator[tuple[str, str, list[str]]]:
        for seed in range(options.first, options.first + options.grammars):
            rng = random.Random(seed)
            rules = random_rules(rng)
            yield f"seed {seed}", source_of(rules), random_texts(rng, rules)
        if options.files is not None:
            yield from file_cases(options.files, backend)

    for name, source, texts in cases():
        expected = llama.verdicts(source, texts)
        try:
            grammar = backend.compile(Constraint(ConstraintKind.GBNF, source))
        except GrammarError as error:
            counts[f"refused here: {str(error)[:60]}" if expected is not None else "refused by both"] += 1
            continue
        if expected is None:
            counts["refused by llama.cpp alone"] += 1
            continue
        counts["grammars compared"] += 1
        wrong = [(text, each) for text, each in zip(texts, expected, strict=True) if accepts(grammar, text) != each]
        counts["texts"] += len(texts)
        counts["accepted"] += sum(expected)
        counts["differences"] += len(wrong)
        for text, each in wrong[:1]:
            print(f"{name}: {text!r} should be {each}\n{source}", flush=True)
    for outcome, count in sorted(counts.items()):
        print(f"{count:9} {outcome}")
    return 1 if counts["differences"] else 0


if __name__ == "__main__":
    sys.exit(main())
