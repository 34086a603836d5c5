"""Context-free grammars over regular terminals: the data structure, its analyses, and readers for Lark, GBNF and W3C EBNF."""
