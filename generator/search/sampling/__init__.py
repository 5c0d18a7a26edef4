"""Points of the unit cube, one module a method; the seed and the dimensions' names decide."""
