"""From a number between 0 and 1 to a value of a domain and back, the same on every machine."""
