"""`python -m rtlang_bench.device`: a runtime on a GPU, its texts checked against the CPU's."""
