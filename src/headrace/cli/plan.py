"""headrace plan"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from headrace.cli.output import json_option, print_json
from headrace.cli.quantities import AMOUNT, COUNTS
from headrace.errors import UsageError

if TYPE_CHECKING:
    from headrace.pipeline.estimate import Workload
    from headrace.pipeline.estimate_rates import Profile
    from headrace.pipeline.simulate import Cluster

FORMATS = "jsonl, jsonl.zst, jsonl.gz, parquet, text"


@click.command(short_help="What preparing a corpus would take: time, cost, memory, files.")
@click.option("--bytes", "text_bytes", type=AMOUNT, metavar="AMOUNT", help="Bytes of text, such as 3TB.")
@click.option("--tokens", type=AMOUNT, metavar="AMOUNT", help="Or tokens, such as 15T.")
@click.option("-j", "--workers", type=COUNTS, default="1,16,64,512,4096", show_default=True, metavar="N[,N...]",
              help="Worker processes, one core each.")  # fmt: skip
@click.option("--format", "formats", multiple=True, metavar="FORMAT[=SHARE]",
              help=f"{FORMATS}; several with shares of the text: parquet=0.7.  [default: jsonl]")  # fmt: skip
@click.option("--file-size", type=AMOUNT, default="1GB", show_default=True, metavar="AMOUNT", help="Of an input file.")
@click.option("-t", "--tokenizer", default="headrace-32k", show_default=True,
              help="Whose rate is taken: headrace-32k, mistral, deepseek; any with --measure.")  # fmt: skip
@click.option("--mb-per-s-per-core", type=float, metavar="X", help="Take this rate, in MB of text a second.")
@click.option("--measure", metavar="SOURCE", help="Measure the rate on a sample of SOURCE, on this machine.")
@click.option("--text-field", help="JSON key or column of SOURCE.  [default: text, content, article, ...]")
@click.option("--seconds", type=float, default=10.0, show_default=True, help="About how long to measure.")
@click.option("--bytes-per-token", type=float, metavar="X", help="Text bytes a token.  [default: as measured]")
@click.option(
    "--task-bytes", type=AMOUNT, metavar="AMOUNT", help="Input bytes per task.  [default: as prepare chooses]"
)
@click.option("--workers-per-node", type=int, default=64, show_default=True, help="That are lost, or slow, together.")
@click.option(
    "--storage-gbps", type=float, metavar="X", help="Gigabits/s of storage for all workers.  [default: no limit]"
)
@click.option("--core-hour-price", type=float, metavar="X", help="Of an hour of one worker, in any currency.")
@click.option("--failures-per-hour", type=float, default=0.001, show_default=True, help="Of one node.")
@click.option("--restart-seconds", type=float, default=60.0, show_default=True, help="Until a lost node is back.")
@click.option("--slow-nodes", type=float, default=0.01, show_default=True, help="Share of nodes that are slow.")
@click.option("--slowdown", type=float, default=2.0, show_default=True, help="How much longer their tasks take.")
@click.option("--spread", type=float, default=0.1, show_default=True, help="Of the logarithm of tasks' times.")
@click.option("--start-seconds", type=float, metavar="X",
              help="Until workers have a task.  [default: 0.88 on one node, else 30]")  # fmt: skip
@click.option("--sync-ms", type=float, default=5.0, show_default=True, help="To make a file durable; two a task.")
@click.option("--array", is_flag=True, help="An array of jobs: each has its own tasks, and there is no driver.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of what goes wrong.")
@json_option
def plan(text_bytes: float | None, tokens: float | None, workers: tuple[int, ...], as_json: bool, **given: Any) -> None:
    """Predict what preparing a corpus takes, from measured rates and a simulation of the run.

    \b
    headrace plan --bytes 3TB --workers 512
    headrace plan --tokens 15T --format parquet=0.8 --format jsonl.zst=0.2
    headrace plan --measure corpus.jsonl --workers 1,2 --core-hour-price 0.04
    """
    from headrace.pipeline.estimate import predict

    workload = make_workload(text_bytes, tokens, given)
    clusters = [make_cluster(count, given) for count in dict.fromkeys(workers)]
    price = given["core_hour_price"]
    if price is not None and not price >= 0:
        raise UsageError(f"--core-hour-price {price:g}: it must be at least 0.")
    predictions = [predict(workload, cluster, price=price) for cluster in clusters]
    if as_json:
        print_json({"profiles": workload.profiles, "predictions": predictions})
        return
    from headrace.cli.plan_tables import show

    show(workload, clusters, predictions)


def make_workload(text_bytes: float | None, tokens: float | None, given: dict[str, Any]) -> Workload:
    from headrace.pipeline.estimate import Workload

    if text_bytes is not None and tokens is not None:
        raise UsageError("--bytes and --tokens both say how much there is. Leave one of them out.")
    if text_bytes is None and tokens is None and given["measure"] is None:
        raise UsageError("How much text? Pass for example --bytes 3TB, --tokens 15T, or --measure SOURCE.")
    shares, profiles, found = _profiles(given)
    if tokens is not None:
        text_bytes = tokens / sum(share / profiles[name].bytes_per_token for name, share in shares.items())
    return Workload(
        text_bytes=found if text_bytes is None else text_bytes,
        profiles=profiles,
        shares=shares,
        file_bytes=given["file_size"],
        task_bytes=None if given["task_bytes"] is None else round(given["task_bytes"]),
    )


def make_cluster(workers: int, given: dict[str, Any]) -> Cluster:
    from headrace.pipeline.estimate import with_usual_start
    from headrace.pipeline.simulate import Cluster

    names = ("workers_per_node", "restart_seconds", "failures_per_hour", "slow_nodes", "slowdown", "spread", "array")
    gbps = given["storage_gbps"]
    cluster = Cluster(
        workers=workers,
        storage_bytes_per_s=float("inf") if gbps is None else gbps * 1e9 / 8,
        sync_seconds=2 * given["sync_ms"] / 1e3,
        seed=given["seed"],
        **{name: given[name] for name in names},
    )
    return with_usual_start(cluster, given["start_seconds"])


def _profiles(given: dict[str, Any]) -> tuple[dict[str, float], dict[str, Profile], float]:
    """Share and profile of each format, and the bytes of text in what was measured."""
    from headrace.pipeline.estimate_rates import profile_of

    if given["measure"] is not None:
        return _measured(given)
    shares = _shares(given["formats"])
    tokenizer = given["tokenizer"]
    if given["mb_per_s_per_core"] is not None:
        tokenizer = "headrace-32k"  # sizes from there; the rate is told
    return shares, {name: _told(profile_of(tokenizer, name), given) for name in shares}, 0.0


def _measured(given: dict[str, Any]) -> tuple[dict[str, float], dict[str, Profile], float]:
    from headrace.cli.measuring import measuring
    from headrace.pipeline.estimate_measure import measure

    if given["formats"]:
        raise UsageError("--format and --measure both say what the files are. Leave --format out.")
    with measuring() as progress:
        profile, text_bytes = measure(
            given["measure"],
            given["tokenizer"],
            seconds=given["seconds"],
            text_field=given["text_field"],
            seed=given["seed"],
            progress=progress,
        )
    return {profile.format: 1.0}, {profile.format: _told(profile, given)}, text_bytes


def _told(profile: Profile, given: dict[str, Any]) -> Profile:
    """With what the user knows better put in; a rate that is told is one of a core among others."""
    import msgspec

    rate, ratio = given["mb_per_s_per_core"], given["bytes_per_token"]
    for flag, value in (("--mb-per-s-per-core", rate), ("--bytes-per-token", ratio)):
        if value is not None and not 0 < value < float("inf"):
            raise UsageError(f"{flag} {value:g}: it must be above 0.")
    if rate is not None:
        profile = msgspec.structs.replace(profile, core_mb_per_s=rate, crowded=1.0, said="as given")
    if ratio is not None:
        profile = msgspec.structs.replace(profile, bytes_per_token=ratio)
    return profile


def _shares(formats: tuple[str, ...]) -> dict[str, float]:
    from headrace.pipeline.estimate_rates import FILE_BYTES

    shares: dict[str, float] = {}
    for written in formats or ("jsonl",):
        name, _, share = written.partition("=")
        try:
            shares[name] = float(share) if share else 1.0
        except ValueError:
            raise UsageError(f"--format {written}: {share!r} is no share. Write for example parquet=0.7.") from None
        if name not in FILE_BYTES:
            raise UsageError(f"--format {written}: it must be one of {', '.join(FILE_BYTES)}.")
    return shares
