"""Plugs into other libraries: one module for each, which needs that library. Importing this package imports none of them."""
