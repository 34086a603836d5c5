"""Values that a running graph will produce, and the operations on them that a graph computes."""
