"""What a run is given: options, budget, principal and outcomes of earlier runs."""
