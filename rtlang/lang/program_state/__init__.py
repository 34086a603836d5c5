"""The state of a program body: its sequence, variables and expressions."""
