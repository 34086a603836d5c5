"""A fleet whose replicas come, go and are replaced while programs run."""
