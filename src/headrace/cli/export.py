"""headrace export"""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.output import json_option, out_console, print_facts, print_json
from headrace.cli.sample import which_checkpoint


@click.command(short_help="Write a trained model for other tools.")
@click.argument("run", type=click.Path())
@click.option("-o", "--out", type=click.Path(), required=True, help="Folder, or file for safetensors.")
@click.option("--format", "kind", type=click.Choice(["llama", "safetensors"]), default="llama", show_default=True,
              help="llama: a folder that transformers loads; safetensors: the weights alone.")  # fmt: skip
@click.option("--checkpoint", default="best", show_default=True, help="latest, best or a step.")
@json_option
def export(run: str, out: str, kind: str, checkpoint: str, as_json: bool) -> None:
    """Write the model of RUN so that others can load it.

    \b
    headrace export runs/my-run --out my-model
    python -c "import transformers as t; t.pipeline(model='my-model')('def ')"
    """
    from headrace.training import export_run

    step = export_run(run, Path(out), kind=kind, checkpoint=which_checkpoint(checkpoint))
    if as_json:
        print_json({"out": out, "format": kind, "step": step})
    else:
        print_facts(out_console(), [("written", out), ("format", kind), ("step", f"{step:,}")])
