"""Work of requests beside the engine thread and the event loop: one executor, in fair turns between principals, and quotas."""
