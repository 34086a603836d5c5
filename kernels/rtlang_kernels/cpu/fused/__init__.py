"""All layers of a model in one compiled call."""
