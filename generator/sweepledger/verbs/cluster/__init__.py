"""The verbs of `sweep cluster`, a module each."""
