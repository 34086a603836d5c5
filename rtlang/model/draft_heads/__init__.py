"""Draft heads: small layers that predict further tokens from the states of the model, EAGLE, EAGLE-3 and MTP."""
