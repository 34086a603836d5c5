"""The model that comes with the package (`rtlang:tiny`): its data generator, training script and weights."""
