"""The shapes of the values that a schema allows, and how facets become shapes."""
