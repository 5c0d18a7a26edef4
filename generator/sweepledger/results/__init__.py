"""From records to everything below `results/<sweep>/`. Pure: no file, no clock, no git.

`summary.summarise` evaluates the records, `tree.changed_files` renders the files, `commit_message` describes them.
Importers name the module that they use: `tree` loads Jinja and all figures.
"""
