"""The types every other part agrees on: graphs, targets, events, parameters, steps, errors, configuration, metrics."""
