"""Questions of durable runs at the command line: lists, answers, a page, and prompts in the terminal."""
