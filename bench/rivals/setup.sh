#!/usr/bin/env bash
# Creates the rivals' own environment: setup.sh FOLDER [PYTHON]. Theirs is apart from Headrace's, whose versions
# must not be bent to fit them.
set -euo pipefail

folder=${1:?usage: setup.sh FOLDER [PYTHON]}
here=$(cd "$(dirname "$0")" && pwd)

"${2:-python3}" -m venv "$folder"
# torch first and alone: resolved together with the rest, pip may choose a build with gigabytes of CUDA.
"$folder/bin/pip" install "$(grep '^torch==' "$here/requirements.txt")"
"$folder/bin/pip" install -r "$here/requirements.txt"
# Without its dependencies: the indexed dataset needs only torch and numpy, the rest is for training.
"$folder/bin/pip" install --no-deps megatron-core==0.16.1
"$folder/bin/python" -W ignore -c "import datasets, datatrove, gigatoken, megatron.core.datasets.indexed_dataset"
