"""Recordings of what models answered: files, keys and the runtimes that write and read them."""
