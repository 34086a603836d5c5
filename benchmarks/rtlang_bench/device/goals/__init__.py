"""The goals of one GPU beside their measured figures: `python -m rtlang_bench.device.goals`."""
