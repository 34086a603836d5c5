"""Still more that requests for the tools are put together from: indirect and unusual ways, written as in `tools_clauses`."""

from tiny_model.corpus.corpus_data import sections_of

TEMPLATES = sections_of("tools_clauses_wider")

CLAUSES = TEMPLATES["CLAUSES"]
