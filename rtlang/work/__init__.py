"""Work of requests beside the engine thread and the event loop: one executor that is fair between principals, and quotas."""
