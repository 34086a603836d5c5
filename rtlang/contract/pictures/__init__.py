"""Pictures of request graphs and their runs: Mermaid, SVG, one HTML page, and views for notebooks."""
