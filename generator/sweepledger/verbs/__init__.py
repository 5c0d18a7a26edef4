"""The verbs of `sweep`, a module each: options, the work, its result, and the result as text."""
