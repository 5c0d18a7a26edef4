"""The figures of a sweep's results, as SVG: shown by any git host, in light and dark mode."""
