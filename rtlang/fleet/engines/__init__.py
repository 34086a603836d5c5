"""A target over engines in other processes: which engine has which graph, restarts, and crashes."""
