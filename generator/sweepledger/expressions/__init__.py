"""The language of constraints, derived values and filters: text to a tree, its types, and its values."""
