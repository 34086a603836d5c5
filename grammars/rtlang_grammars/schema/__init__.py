"""JSON Schema as shapes: what text a schema allows, with all the algebra of the vocabulary already done."""
