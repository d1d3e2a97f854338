"""The simulation against what can be worked out by hand: nothing is lost, limits are limits, closed forms come out."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import UsageError
from headrace.pipeline.simulate import Cluster, Outcome, simulate

lengths = st.lists(st.floats(0.01, 100), min_size=1, max_size=60)
many_workers = st.integers(1, 40)


def run(seconds: list[float], moved: list[float] | None = None, **settings: object) -> Outcome:
    return simulate(seconds, moved or [1.0] * len(seconds), Cluster(**settings))  # type: ignore[arg-type]


def accounted(out: Outcome) -> float:
    return out.working + out.storage_wait + out.lost + out.starting + out.idle + out.finishing


@given(st.integers(1, 200), many_workers, st.floats(0.1, 50), st.floats(0, 5), st.floats(0, 1), st.booleans())
def test_equal_tasks_take_as_many_rounds_as_there_are(
    tasks: int, workers: int, each: float, start: float, finish: float, array: bool
) -> None:
    out = run([each] * tasks, workers=workers, start_seconds=start, finish_seconds=finish, array=array)
    assert out.seconds == pytest.approx(start + math.ceil(tasks / workers) * each + finish)
    assert out.retries == out.failures == 0


@given(lengths, many_workers, st.floats(0, 10), st.booleans())
def test_all_work_is_done_once_and_all_time_is_accounted_for(
    seconds: list[float], workers: int, start: float, array: bool
) -> None:
    out = run(seconds, workers=workers, start_seconds=start, array=array, sync_seconds=0.1, finish_seconds=0.5)
    assert out.working == pytest.approx(sum(seconds))
    assert out.bytes_moved == pytest.approx(len(seconds))
    assert accounted(out) == pytest.approx(workers * out.seconds)
    assert out.seconds >= start + max(seconds)
    assert out.seconds >= start + sum(seconds) / workers


@given(lengths, many_workers, st.integers(1, 20))
def test_more_workers_are_never_slower_where_nothing_limits_them(seconds: list[float], workers: int, more: int) -> None:
    few, many = run(seconds, workers=workers), run(seconds, workers=workers + more)
    assert many.seconds <= few.seconds * (1 + 1e-12)


@given(lengths, many_workers)
def test_within_the_bound_of_any_list_of_tasks(seconds: list[float], workers: int) -> None:
    """Graham: no worse than the work shared out evenly and one more task."""
    out = run(seconds, workers=workers)
    assert out.seconds <= sum(seconds) / workers + max(seconds) + 1e-9


@given(st.integers(1, 12), st.integers(1, 30), st.floats(0.5, 20), st.floats(1, 1e9))
def test_storage_that_gives_less_than_is_wanted_decides_alone(
    rounds: int, workers: int, each: float, size: float
) -> None:
    tasks = rounds * workers
    wanted = workers * size / each
    out = run([each] * tasks, [size] * tasks, workers=workers, storage_bytes_per_s=wanted / 4)
    assert out.seconds == pytest.approx(tasks * size / (wanted / 4))
    assert out.working == pytest.approx(tasks * each)
    assert out.storage_wait == pytest.approx(3 * tasks * each)


def test_storage_is_never_used_beyond_its_limit() -> None:
    seconds = [1.0 + (7 * i) % 5 for i in range(300)]
    moved = [100.0 * (1 + i % 3) for i in range(300)]
    for limit in (50.0, 200.0, 1_000.0, 1e9):
        out = run(seconds, moved, workers=16, storage_bytes_per_s=limit)
        assert out.seconds >= sum(moved) / limit * (1 - 1e-9)
        assert out.seconds >= sum(seconds) / 16
        assert out.working == pytest.approx(sum(seconds))
        assert accounted(out) == pytest.approx(16 * out.seconds)


def test_enough_storage_is_as_good_as_no_limit() -> None:
    seconds, moved = [1.0, 2.0, 3.0] * 40, [10.0] * 120
    assert run(seconds, moved, workers=8, storage_bytes_per_s=81.0).seconds == run(seconds, moved, workers=8).seconds


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 40), st.floats(1, 300), st.booleans())
def test_lost_nodes_are_retried_until_all_is_done(seed: int, workers: int, per_hour: float, array: bool) -> None:
    seconds = [3.0] * 150
    out = run(
        seconds,
        workers=workers,
        workers_per_node=4,
        failures_per_hour=per_hour,
        restart_seconds=5.0,
        seed=seed,
        array=array,
    )
    assert out.working == pytest.approx(sum(seconds))
    assert len(seconds) - 1e-9 <= out.bytes_moved <= len(seconds) + out.retries
    assert accounted(out) == pytest.approx(workers * out.seconds)
    assert (out.lost > 0) == (out.retries > 0)


def test_a_lost_node_costs_what_it_had_and_the_time_until_it_is_back() -> None:
    """One worker, one task of 1,000 s."""
    outcomes = [run([1000.0], workers=1, failures_per_hour=1.5, restart_seconds=50.0, seed=seed) for seed in range(20)]
    assert {out.retries for out in outcomes} >= {0, 1}
    for out in outcomes:
        assert out.failures == out.retries
        assert out.seconds == pytest.approx(1000.0 + out.lost)
        assert 50.0 * out.retries <= out.lost <= 1050.0 * out.retries


def test_a_loss_at_a_given_second() -> None:
    """Two workers with tasks of 10 s; one is lost at 14 s with 4 s of its second task, and is back at 17."""
    out = run([10.0] * 4, workers=2, workers_per_node=1, losses=((14.0, 1),), restart_seconds=3.0)
    assert (out.seconds, out.lost, out.retries, out.failures) == (pytest.approx(27.0), pytest.approx(7.0), 1, 1)
    assert out.bytes_moved == pytest.approx(4.4)


def test_a_task_that_is_lost_at_every_attempt_is_counted_and_its_last_try_is_slow() -> None:
    out = run([600.0], workers=1, failures_per_hour=12.0, restart_seconds=1.0, seed=3)
    assert out.retries >= 3
    assert out.stops == out.retries // 3
    twice = [seed for seed in range(40) if run([600.0], workers=1, failures_per_hour=4.0, seed=seed).retries == 2]
    slow = run([600.0], workers=1, failures_per_hour=4.0, seed=twice[0], reference_factor=1.5)
    assert slow.working == pytest.approx(900.0) or slow.retries > 2


def test_an_idle_worker_takes_over_what_another_lost() -> None:
    """Two nodes, one task: when its node is lost the other one does it, and nobody waits for the first to be back."""
    lost = [
        out
        for seed in range(60)
        if (
            out := run(
                [400.0], workers=2, workers_per_node=1, failures_per_hour=2.0, restart_seconds=10_000.0, seed=seed
            )
        ).retries
        == 1
    ]
    assert lost
    assert all(out.seconds < 10_000 for out in lost)


def test_slow_nodes_do_less_of_a_common_queue_and_hold_up_an_array() -> None:
    seconds, shape = [10.0] * 1000, {"workers": 10, "workers_per_node": 1, "slow_nodes": 0.1, "slowdown": 2.0}
    queue, array = run(seconds, **shape), run(seconds, array=True, **shape)
    assert array.seconds == pytest.approx(2 * 1000.0)
    assert 1000.0 * 10 / 9.5 <= queue.seconds <= 1000.0 * 10 / 9.5 + 20
    assert array.idle == pytest.approx(9 * 1000.0)


def test_uneven_tasks_keep_their_mean() -> None:
    out = run([10.0] * 20_000, workers=1, spread=0.5, seed=1)
    assert out.working == pytest.approx(200_000, rel=0.02)
    assert out.working != 200_000
    assert run([10.0] * 50, workers=3, spread=0.5, seed=1) == run([10.0] * 50, workers=3, spread=0.5, seed=1)
    assert run([10.0] * 50, workers=3, spread=0.5, seed=1) != run([10.0] * 50, workers=3, spread=0.5, seed=2)


def test_files_are_made_durable_one_after_another_or_by_each_job_of_an_array() -> None:
    tasks = [1.0] * 100
    assert run(tasks, workers=100, sync_seconds=0.5).seconds == pytest.approx(1 + 100 * 0.5)
    assert run(tasks, workers=100, sync_seconds=0.5, array=True).seconds == pytest.approx(1.5)
    assert run(tasks, workers=1, sync_seconds=0.5).seconds == pytest.approx(100.5)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"workers": 0}, "--workers 0"),
        ({"storage_bytes_per_s": 0.0}, "--storage-gbps 0"),
        ({"failures_per_hour": -1.0}, "--failures-per-hour -1"),
        ({"spread": math.inf}, "--spread inf"),
        ({"slow_nodes": 1.5}, "--slow-nodes 1.5"),
        ({"sync_seconds": math.nan}, "--sync-ms nan"),
    ],
)
def test_clusters_that_cannot_be(setting: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        replace(Cluster(workers=1), **setting)  # type: ignore[arg-type]


def test_nothing_to_do() -> None:
    with pytest.raises(UsageError, match="no task"):
        simulate([], [], Cluster(workers=1))
