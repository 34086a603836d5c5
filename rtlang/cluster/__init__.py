"""Programs on several engines: a router of whole programs, and a target that runs them on replicas."""
