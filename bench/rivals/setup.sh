#!/usr/bin/env bash
# Creates the rivals' own environments: setup.sh FOLDER [PYTHON]. Theirs are apart from Headrace's, whose versions
# must not be bent to fit them. MosaicML Streaming wants numpy below 2.2 and gets FOLDER/streaming to itself; training
# has FOLDER/training, because the torchvision of the others does not load beside a CPU build of torch.
set -euo pipefail

folder=$(realpath -m "${1:?usage: setup.sh FOLDER [PYTHON]}")
here=$(cd "$(dirname "$0")" && pwd)

"${2:-python3}" -m venv "$folder"
# torch first and alone: resolved together with the rest, pip may choose a build with gigabytes of CUDA.
"$folder/bin/pip" install "$(grep '^torch==' "$here/requirements.txt")"
"$folder/bin/pip" install -r "$here/requirements.txt"
# Without its dependencies: the indexed dataset needs only torch and numpy, the rest is for training.
"$folder/bin/pip" install --no-deps megatron-core==0.16.1
"$folder/bin/python" -W ignore -c "import datasets, datatrove, gigatoken, megatron.core.datasets.gpt_dataset"
"$folder/bin/python" -W ignore -c "import grain, litdata, torchdata.stateful_dataloader"

torch=$(grep '^torch==' "$here/requirements.txt")
"${2:-python3}" -m venv "$folder/streaming"
"$folder/streaming/bin/pip" install "$torch"
# torch is named again, or pip may take another one to please torchvision.
"$folder/streaming/bin/pip" install "$torch" mosaicml-streaming==0.13.0
# Through the module, which knows that torchvision's operators may be missing.
cd "$here/.." && "$folder/streaming/bin/python" -W ignore -c "import loading_rivals.mosaic"

"${2:-python3}" -m venv "$folder/training"
"$folder/training/bin/pip" install "$torch"
"$folder/training/bin/pip" install "$torch" numpy==2.4.6 lightning==2.6.6 transformers==5.22.2 accelerate==1.15.0 \
    'jsonargparse[signatures]>=4.37,<=4.41'
# Without its dependencies: litgpt asks for a huggingface-hub below 1.4, which transformers does not work with.
"$folder/training/bin/pip" install --no-deps litgpt==0.5.13
"$folder/training/bin/python" -W ignore -c "import litgpt.pretrain, transformers, accelerate"
