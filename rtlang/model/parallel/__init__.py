"""One model over several processes: each computes a part of every layer."""
