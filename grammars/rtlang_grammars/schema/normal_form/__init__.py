"""The normal form of a schema: facets per JSON type, their intersection, emptiness and membership."""
