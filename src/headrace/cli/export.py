"""headrace export"""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.output import facts, json_option, out_console, print_json
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
    python -c "import transformers; transformers.AutoModelForCausalLM.from_pretrained('my-model')"
    """
    from headrace.training import export_run

    step = export_run(run, Path(out), kind=kind, checkpoint=which_checkpoint(checkpoint))
    if as_json:
        print_json({"out": out, "format": kind, "step": step})
    else:
        out_console().print(facts([("written", out), ("format", kind), ("step", f"{step:,}")]))
