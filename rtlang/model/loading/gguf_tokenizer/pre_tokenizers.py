"""The pre-tokenizers that `tokenizer.ggml.pre` names: how byte-level BPE cuts a text into words before it merges.

The names and what they stand for are llama.cpp's. Where it only approximates the pattern that the model was published with (it has no
categories of upper and lower case, no classes without Han, no case folding), the published pattern is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """How the texts of one kind of byte-level BPE are cut.

    Attributes:
        patterns: regular expressions, applied one after another: a match is a word of its own, and so is the text between matches.
        ignores_merges: a word that is a token as a whole is that token, whatever the merges give.
        adds_bos: sequences start with the start token where the file does not say.
        is_composed: texts are brought to Unicode's NFC first. llama.cpp never does, the published tokenizers do.
    """

    patterns: tuple[str, ...]
    ignores_merges: bool = False
    adds_bos: bool = False
    is_composed: bool = False

    def steps(self) -> dict[str, Any]:
        """The entries `normalizer` and `pre_tokenizer` of tokenizer.json."""
        splits = [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
            for pattern in self.patterns
        ]
        to_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
        return {
            "normalizer": {"type": "NFC"} if self.is_composed else None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*splits, to_bytes]},
        }


_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"


def _by_case(ending: str, excluded: str = "") -> str:
    """Words that are cut where lower case is followed by upper case."""
    upper, lower = f"[{_UPPER}{excluded}]", f"[{_LOWER}{excluded}]"
    first = r"[^\r\n\p{L}\p{N}]?"
    return f"{first}{upper}*{lower}+{ending}|{first}{upper}+{lower}*{ending}"


_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = rf"{_CONTRACTION}|{_WORD}|\p{{N}}{{1,3}}|{_SIGNS}|{_SPACES}"
_QWEN2 = rf"{_CONTRACTION}|{_WORD}|\p{{N}}|{_SIGNS}|{_SPACES}"
_QWEN35 = (
    rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}"
)
_JAIS2 = (
    rf"{_CONTRACTION}|{_WORD}|\p{{N}}{{1,3}}|{_SIGNS}|\s*[\r\n]+|"
    + "".join(rf"\s{{{length}}}(?!\S)|" for length in (512, 256, 128, 64, 32, 16, 8, 4))
    + r"\s{1,2}(?!\S)|\s{1}"
)
_O200K = rf"{_by_case(_CONTRACTION + '?')}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
_YOUTU = rf"{_by_case(_CONTRACTION + '?')}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
_TEKKEN = rf"{_by_case('')}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
_NOT_HAN = r"&&[^\p{Han}]"
_KIMI = rf"\p{{Han}}+|{_by_case(_CONTRACTION + '?', _NOT_HAN)}|\p{{N}}{{1,3}}|{_SIGNS}|{_SPACES}"
_DEEPSEEK3 = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"
    + _SPACES
)
_SEED_CODER = rf"{_CONTRACTION}|{_WORD}|\p{{N}}{{1}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_SPACES}"
_BAILING = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
_EXAONE_MOE = (
    rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]?|"
    r"\s*[\r\n]|\s+(?!\S)|\s+"
)
_SIGN_RUNS = r"[\p{P}\$\+<=>\^~\|]+"
_THREE_DIGITS = "[0-9][0-9][0-9]"
_DIGIT_GROUPS = r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"  # of three, counted from the right
_LINES = r"[^\n]+|[\n]+"
_SPARK = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|"
    r"\s+(?!\S)|\s+"
)
_CHINESE = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
_EAST_ASIAN = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
_YOUTU_SCRIPTS = (
    "[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f"
    "\ufe30-\ufe4f]+|[\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
)
_AFMOE_SCRIPTS = (
    "[\u4e00-\u9fff\u3400-\u4dbf\u8c48-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e40-\u0e7f"
    "\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+"
)
_NOT_SENTENCE_SIGNS = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"
_DEEPSEEK_SIGNS = "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"
_DEEPSEEK_LETTERS = (
    "\\s?[A-Za-z\xb5\xc0-\xd6\xd8-\xf6\xf8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377"
    "\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-"
    "\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-"
    "\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80"
    "-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4"
    "\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139"
    "\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d"
    "\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a"
    "\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-"
    "\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943]+"
)


_LLAMA3_CUT = PreTokenizer((_LLAMA3,), ignores_merges=True, adds_bos=True)
_GPT2_CUT = PreTokenizer((_GPT2,))
_QWEN2_CUT = PreTokenizer((_QWEN2,), is_composed=True)
_DIGITS_CUT = PreTokenizer((r"\p{N}", _GPT2))
_DEEPSEEK3_CUT = PreTokenizer((r"\p{N}{1,3}", _CHINESE, _DEEPSEEK3))
_O200K_CUT = PreTokenizer((_O200K,))
_BAILING_CUT = PreTokenizer((_BAILING,))
_TINY_AYA_CUT = PreTokenizer((r"\d{1,3}(?=(?:\d{3})*\b)", _O200K))
_SENTENCE_CUT = PreTokenizer((_NOT_SENTENCE_SIGNS,))
_DEFAULT_CUT = PreTokenizer((_SIGN_RUNS, _GPT2, r"\p{N}+", _THREE_DIGITS))

PRE_TOKENIZERS: dict[str, PreTokenizer] = {
    "default": _DEFAULT_CUT,
    **dict.fromkeys(
        ("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"), _LLAMA3_CUT
    ),
    "jina-v5-nano": _LLAMA3_CUT,
    **dict.fromkeys(("dbrx", "smaug-bpe", "chatglm-bpe", "glm4"), PreTokenizer((_LLAMA3,))),
    "jais-2": PreTokenizer((_JAIS2,)),
    "minicpm5": PreTokenizer(
        (r"\p{N}{1,3}", rf"{_CONTRACTION}|{_WORD}|\p{{N}}+|{_SIGNS}|{_SPACES}"), ignores_merges=True
    ),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "megrez", "kormo", "f2llmv2"), _QWEN2_CUT),
    "qwen35": PreTokenizer((_QWEN35,), is_composed=True),
    **dict.fromkeys(("stablelm2", "hunyuan", "solar-open", "grok-2"), PreTokenizer((_QWEN2,))),
    "ufakzeka": PreTokenizer((rf"{_WORD}|\p{{N}}|{_SIGNS}|{_SPACES}",)),
    "laguna": PreTokenizer((_LINES, _QWEN2)),
    "deepseek-llm": PreTokenizer(
        (r"[\r\n]", _DEEPSEEK_LETTERS, _DEEPSEEK_SIGNS, r"\s+$", _EAST_ASIAN, r"\p{N}+"),
    ),
    "deepseek-coder": PreTokenizer((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _EAST_ASIAN, r"\p{N}")),
    **dict.fromkeys(("deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"), _DEEPSEEK3_CUT),
    "spark2_5": PreTokenizer((r"\p{N}{1,3}", _CHINESE, _SPARK, r"\p{N}")),
    "afmoe": PreTokenizer((_DIGIT_GROUPS, _AFMOE_SCRIPTS, _DEEPSEEK3)),
    "youtu": PreTokenizer((_YOUTU_SCRIPTS, _YOUTU), ignores_merges=True),
    "falcon": PreTokenizer((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, _THREE_DIGITS)),
    **dict.fromkeys(("gpt-2", "phi-2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "jina-v1-en"), _GPT2_CUT),
    **dict.fromkeys(("jina-v2-code", "roberta-bpe", "gigachat", "a.x-4.0", "mellum", "jais", "trillion"), _GPT2_CUT),
    **dict.fromkeys(("granite-docling", "exaone4"), _GPT2_CUT),
    **dict.fromkeys(("mpt", "olmo", "modern-bert"), PreTokenizer((_GPT2,), is_composed=True)),
    **dict.fromkeys(("starcoder", "refact", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"), _DIGITS_CUT),
    "command-r": PreTokenizer((r"\p{N}", _GPT2), is_composed=True),
    **dict.fromkeys(("poro-chat", "bloom", "gpt3-finnish"), _SENTENCE_CUT),
    "viking": PreTokenizer((_NOT_SENTENCE_SIGNS, r"\p{N}")),
    "tekken": PreTokenizer((_TEKKEN,), ignores_merges=True, adds_bos=True),
    **dict.fromkeys(("gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"), _O200K_CUT),
    "granite-embed-multi-97m": PreTokenizer((_O200K,), ignores_merges=True),
    **dict.fromkeys(("tiny_aya", "cohere2moe"), _TINY_AYA_CUT),
    "kimi-k2": PreTokenizer((_KIMI,)),
    "superbpe": PreTokenizer((r"\p{N}+", r"(?=(\d{3})+(?!\d))")),
    **dict.fromkeys(("bailingmoe", "bailingmoe2", "llada-moe"), _BAILING_CUT),
    "seed-coder": PreTokenizer((_SEED_CODER,)),
    "exaone-moe": PreTokenizer((_EXAONE_MOE,)),
    "chameleon": PreTokenizer(
        (
            "<sentinel:[0-9]+>",
            "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
            r"([\t\n]|    |  )",
            r"\p{N}",
            r"[\p{P}!-/:-@\[-`{-~]",
            _GPT2,
        ),
        adds_bos=True,
    ),
}
"""By the names in `tokenizer.ggml.pre`."""
