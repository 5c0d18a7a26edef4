"""Computing constraints and derived values: closures over the tree, never code."""
