"""Grammars with a lexer, bound to a vocabulary: places in a text, masks, rule reports and completions."""
