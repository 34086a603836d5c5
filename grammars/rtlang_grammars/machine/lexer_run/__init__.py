"""Runs grammars with a lexer: the lexer's automaton and the parser's stacks at work, masks and completions."""
