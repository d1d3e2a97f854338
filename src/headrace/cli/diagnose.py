"""`headrace diagnose ...`: where the time goes, in a run, in anybody's script, in tokenizing, in loading."""

from __future__ import annotations

from importlib import import_module

import click

WAYS = {  # one file each
    "run": "headrace.cli.diagnose_run",
    "sync": "headrace.cli.diagnose_sync",
    "tokenization": "headrace.cli.diagnose_tokenization",
    "data": "headrace.cli.diagnose_data",
    "training": "headrace.cli.diagnose_training",
    "compare": "headrace.cli.diagnose_compare",
}


class Ways(click.Group):
    """Imports the module of a way only when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(WAYS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = WAYS.get(cmd_name)
        return getattr(import_module(module), cmd_name) if module else None


@click.group(cls=Ways, short_help="Where every millisecond of a training step goes, and what to change.")
def diagnose() -> None:
    """Say where the time goes, and what to change.

    \b
    headrace diagnose run -- python train.py ARGS    any PyTorch script, unchanged
    headrace diagnose sync -- python train.py ARGS   its GPU syncs, without a GPU
    headrace diagnose tokenization corpus.jsonl      what tokenizing costs
    headrace diagnose data data/web                  whether training waits for it
    headrace diagnose training runs/NAME             a run of headrace train
    headrace diagnose compare before.json after.json whether the gain came true
    """
