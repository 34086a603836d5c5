"""What further requests for the other tools are put together from, written as in `tools_clauses`."""

from tiny_model.corpus.corpus_data import sections_of

TEMPLATES = sections_of("tools_clauses_more")

CLAUSES = TEMPLATES["CLAUSES"]
