"""The spec that `sweep new` writes: complete, runnable, and explained line by line."""

SCHEMA_FILE = ".schema.json"
"""File in the specs' folder with the schema for editors; the first line of a spec refers to it."""

MNIST = """\
# yaml-language-server: $schema=.schema.json
# A sweep: what to try, what to measure, how to run it.
# `sweep validate` checks it; `sweep try {name}` runs one trial here and now;
# `sweep generate {name}` writes the batch to commit. Problems are explained in docs/problems.md.

name: {name}   # the file's name
description: How far do learning rate and batch size carry a small CNN on MNIST?

method: grid   # every combination; or random, sobol, halton, latin-hypercube, list: `sweep schema` has all
metric: {{name: test_accuracy, goal: maximize}}

parameters:
  learning_rate: {{values: [0.01, 0.04, 0.1, 0.4]}}   # or a range: {{min: 0.01, max: 0.41, step: 0.1}}
  batch_size: {{values: [32, 64, 128, 512]}}
  epochs: {{value: 2}}

# One list item an argument, no shell. "${{args}}" becomes --learning_rate=0.01 --batch_size=32 --epochs=2
command: [python, -m, trainer, mnist, "${{args}}"]

run:
  data: mnist   # a dataset of sweepledger.yaml
  resources: {{cpu: 1, memory: 2Gi}}   # of one trial
  parallelism: 4   # trials at once
  retries: 1   # of a trial that failed for no fault of its hyperparameters
  timeout: 10m   # of one attempt
"""


PLAIN = """\
# yaml-language-server: $schema=.schema.json
# A sweep: what to try, what to measure, how to run it.
# `sweep validate` checks it; `sweep try {name}` runs one trial here and now;
# `sweep generate {name}` writes the batch to commit.

name: {name}   # the file's name
description: Which values score best?   # the question that the results answer

method: grid   # every combination; or random, sobol, halton, latin-hypercube, list: `sweep schema` has all
metric: {{name: score, goal: maximize, source: stdout}}   # a line `score=0.94`; or JSON in $SWEEP_RESULT

parameters:
  x: {{values: [1, 2, 3]}}
  rate: {{values: [0.1, 0.01]}}

# One list item an argument, no shell. "${{args}}" becomes --x=1 --rate=0.1
command: [python3, code/train.py, "${{args}}"]

run:
  # This folder's committed tree is locked and run; nothing else is there. In a cluster the image holds it, or
  # pods take it from git: {{path: code, mode: clone}}, with `code:` in sweepledger.yaml.
  code: {code}
  resources: {{cpu: 1, memory: 1Gi}}   # of one trial
  parallelism: 2   # trials at once
  retries: 1   # of a trial that failed for no fault of its hyperparameters
  timeout: 10m   # of one attempt
"""


def starter_spec(name: str, *, example: str = PLAIN, clones: bool = False) -> str:
    """Return a starter spec: for the user's own program, or (`MNIST`) for the bundled trainer.

    `clones`: whether pods fetch code from git, by `code` in the settings.
    """
    return example.format(name=name, code="{path: code, mode: clone}" if clones else "{path: code}")
