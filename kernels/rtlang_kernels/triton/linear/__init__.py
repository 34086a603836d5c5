"""Linear layers over weights of few bits."""
