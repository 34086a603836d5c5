"""Effects that programs have beside calls: time, randomness, questions to people."""
