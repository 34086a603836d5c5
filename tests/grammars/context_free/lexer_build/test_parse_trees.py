"""Parse trees, against those of lark's own lexers and parsers."""

from __future__ import annotations

import lark
import pytest

from rtlang_grammars.context_free.lexer_build.parse_trees import parse_tree
from rtlang_grammars.spec.constraint import Lexer
from rtlang_grammars.spec.errors import GrammarError

CALCULATOR = """
?start: sum
?sum: product | sum "+" product -> add | sum "-" product -> sub
?product: atom | product "*" atom -> mul
?atom: NUMBER -> number | "-" atom -> neg | NAME [args] | "(" sum ")"
args: "(" _list{sum} ")"
_list{x}: x ("," x)*
%import common.CNAME -> NAME
%import common.NUMBER
%import common.WS
%ignore WS
"""


@pytest.mark.parametrize("lexer", [Lexer.LONGEST, Lexer.LARK])
@pytest.mark.parametrize("text", ["1", "a + b(1,\n 2*c) - (3 - -x)", "f", "\n1 +\n  2"])
def test_trees_are_those_of_lark(text: str, lexer: Lexer) -> None:
    expected = lark.Lark(CALCULATOR, parser="lalr").parse(text)
    found = parse_tree(CALCULATOR, text, lexer)
    assert found == expected
    places = [[(each, each.line, each.column, each.start_pos, each.end_line, each.end_column) for each in tokens_of(tree)]
              for tree in (found, expected)]  # fmt: skip
    assert places[0] == places[1]


def tokens_of(tree: object) -> list[lark.Token]:
    if isinstance(tree, lark.Token):
        return [tree]
    return [token for child in getattr(tree, "children", ()) for token in tokens_of(child)]


def test_characters_beyond_ascii_have_places_in_characters() -> None:
    tree = parse_tree("start: W+\nW: /[a-zé]+/\n%ignore /[ 日\\n]+/", "é 日é\na")
    assert [(str(each), each.start_pos, each.line, each.column) for each in tokens_of(tree)] == [
        ("é", 0, 1, 1),
        ("é", 3, 1, 4),
        ("a", 5, 2, 1),
    ]


def test_the_longest_match_shapes_the_tree() -> None:
    source = 'start: N (OP N)*\n!op: OP\nOP: "*" | POWER\nPOWER: "**"\nN: /[0-9]+/'
    assert [str(token) for token in parse_tree(source, "2**3").children] == ["2", "**", "3"]


def test_rules_with_many_optional_parts_keep_their_shape() -> None:
    source = "start: " + " ".join(f"[{letter}]" for letter in "ABCDEFGHIJKL") + "\n"
    source += "\n".join(f'{letter}: "{letter.lower()}"' for letter in "ABCDEFGHIJKL")
    tree = parse_tree(source, "bdl")
    assert [str(token) for token in tree.children if token is not None] == ["b", "d", "l"]


def test_an_ambiguous_text_has_one_tree() -> None:
    tree = parse_tree('start: e\n?e: e "+" e -> add | "1" -> one', "1+1+1")
    assert len(list(tree.find_data("add"))) == 2


def test_without_a_lexer_the_parser_cuts_the_text() -> None:
    source = 'start: "select" NAME "from" NAME\nNAME: /[a-z]+/\n%ignore " "'
    tree = parse_tree(source, "select afromb", Lexer.ANYWHERE)
    assert [str(token) for token in tree.children] == ["a", "b"]
    with pytest.raises(ValueError, match="incomplete"):
        parse_tree(source, "select afromb")


CHAT = """
start: turn+
turn: IM_START role "\\n" words IM_END
!role: "user" | "assistant"
words: (WORD | CALL)*
WORD: /[a-zé]+/
%ignore " "
"""
TOKENS = {"IM_START": "<|im_start|>", "IM_END": "<|im_end|>", "CALL": "<|c|>"}


@pytest.mark.parametrize("lexer", list(Lexer))
def test_special_tokens_stand_in_trees_under_their_names(lexer: Lexer) -> None:
    text = "<|im_start|>user\nsay é it <|c|> <|c|>now<|im_end|><|im_start|>assistant\n<|im_end|>"
    ours = CHAT
    for name, written in TOKENS.items():
        ours = ours.replace(name, written)
    theirs = CHAT + "".join(f'{name}: "{written}"\n' for name, written in TOKENS.items())
    expected, found = lark.Lark(theirs, parser="lalr").parse(text), parse_tree(ours, text, lexer)
    assert [str(each) for each in tokens_of(found)] == [str(each) for each in tokens_of(expected)]
    assert [TOKENS.get(each.type, each.type) for each in tokens_of(expected)] == [
        each.type for each in tokens_of(found)
    ]
    assert [each.data for each in found.iter_subtrees()] == [each.data for each in expected.iter_subtrees()]
    places = [
        [(each.line, each.column, each.start_pos, each.end_pos) for each in tokens_of(tree)]
        for tree in (found, expected)
    ]
    assert places[0] == places[1]


def test_a_grammar_with_ids_has_no_trees() -> None:
    with pytest.raises(GrammarError, match=r"<\[5\]>: a text does not show ids"):
        parse_tree('start: "a" <[5]>', "a")
