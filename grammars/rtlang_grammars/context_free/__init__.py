"""Context-free grammars over regular terminals: the data, what can be asked of them, and the readers of Lark and GBNF sources."""
