"""What the process that serves clients costs for each token, without a model and beside another server."""
