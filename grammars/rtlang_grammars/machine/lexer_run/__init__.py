"""Arrays of grammars with a lexer and the code that runs over them: the lexer's automaton, parser stacks, masks."""
