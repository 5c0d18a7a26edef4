"""Documents as their classes declare them: the keys, and how a valid document is decoded."""
