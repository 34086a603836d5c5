"""Translation between the `/generate` requests of SGLang's clients and graphs, without I/O."""
