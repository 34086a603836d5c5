"""The state of a graph's nodes, and when their actions run."""
