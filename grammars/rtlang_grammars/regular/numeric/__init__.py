"""Languages of decimal numbers within bounds."""
