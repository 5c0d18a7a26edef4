"""The work that several verbs, the Python API or tests call. Nothing here prints."""
