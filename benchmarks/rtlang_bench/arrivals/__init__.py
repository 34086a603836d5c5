"""The benchmark of work that arrives over time: latencies and token gaps under the step planner and under fixed step sizes."""
