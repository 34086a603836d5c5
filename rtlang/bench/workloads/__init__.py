"""The workloads of `rtlang bench`: request graphs with exact token counts, generated from a seed."""
