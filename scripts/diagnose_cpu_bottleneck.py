"""headrace diagnose under the name that the original guides use; see docs/from-the-guides.md.

python scripts/diagnose_cpu_bottleneck.py train.py --batch_size 8    any PyTorch script
python scripts/diagnose_cpu_bottleneck.py runs/NAME                  a run of headrace train
python scripts/diagnose_cpu_bottleneck.py                            the newest run in runs/
"""

from headrace.cli.original import run_bottleneck

if __name__ == "__main__":
    run_bottleneck()
