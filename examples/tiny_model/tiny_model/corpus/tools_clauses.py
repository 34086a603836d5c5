"""What further requests for the tools of `tools_catalogue` are put together from.

A block a tool: its name; `do`, what somebody is asked to do; `noun`, what somebody wants; `say`, whole sentences that call for it;
`with`, adjuncts. Lines hold alternatives between bars, and a
line that ends with a bar goes on in the next. What a request leaves out is told by an adjunct.
"""

from tiny_model.corpus.corpus_data import sections_of

TEMPLATES = sections_of("tools_clauses")

CLAUSES = TEMPLATES["CLAUSES"]
