#!/bin/sh
# Resolve locked versions anew. The files hold versions and hashes only, so any index may serve them.
# torch is left out: its builds for one version differ by machine; the Makefile pins its version.
set -eu
cd "$(dirname "$0")/.."
compile() {
  .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate "$@"
}
compile requirements/bootstrap.in --output-file requirements/bootstrap.txt
compile pyproject.toml --output-file requirements/core.txt
compile pyproject.toml --extra documents --extra login --extra postgres --constraint requirements/core.txt \
  --output-file requirements/server.txt
compile pyproject.toml requirements/local.in --extra documents --group dev --constraint requirements/server.txt \
  --output-file requirements/dev.txt
# Frameworks whose pipelines and data are tested. DeepEval and ragas ask for an older rich than the tests have, and what
# is tested of them works with ours: so the tests' versions override what they ask for.
compile --group pyproject.toml:frameworks --overrides requirements/dev.txt --output-file requirements/frameworks.txt
