"""headrace train under the name that the original guides use; see docs/from-the-guides.md.

python examples/train_digitalocean.py --config large --dataset finewebedu --pretokenized --epochs 1 --mixed_precision \
    --gradient_accumulation 4 --num_workers 8 --use_8bit_optim
"""

from headrace.cli.original import run_original

if __name__ == "__main__":
    run_original("train")
