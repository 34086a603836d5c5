"""What is in `tools_clauses_wider` for the other tools."""

from tiny_model.corpus.corpus_data import sections_of

TEMPLATES = sections_of("tools_clauses_wider_more")

CLAUSES = TEMPLATES["CLAUSES"]
