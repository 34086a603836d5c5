"""Reports of a running engine: metrics, spans, timelines and a summary."""
