"""Compiles Lark grammars with a lexer: terminals to an automaton in which they compete for the text, rules to a parser's tables."""
