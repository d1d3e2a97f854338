"""Every cause of slow data at its threshold, and what is advised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conftest_data import flat, made_up
from headrace.diagnosis.data_findings import Findings
from headrace.diagnosis.data_machine import Memory, Mount
from headrace.diagnosis.data_rules import TABLE, fixes
from headrace.diagnosis.report import MOST

SMALL = Memory(available=3_000_000_000, machine=3_500_000_000, limit=None)  # 2 GB of data are more than half of it
NFS = Mount("store:/data", "nfs4")
LIMITED = Memory(available=1_000_000_000, machine=64_000_000_000, limit=1_500_000_000)

# For each rule one that it catches, and some that it must let go.
CASES: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "network_filesystem": (
        {"mount": NFS, "cold": 500e3},
        [
            {"mount": NFS, "cold": 1.3e6},
            {"mount": NFS, "cold": None},
            {"mount": Mount("/dev/sda", "ext4"), "cold": 500e3},
            {"mount": None, "cold": 500e3},
        ],
    ),
    "memory_limit": (
        {"memory": LIMITED, "cold": 500e3},
        [
            {"memory": LIMITED, "cold": 1.3e6},
            {"memory": Memory(1_000_000_000, 64_000_000_000, 2_000_000_000), "cold": 500e3},
            {"memory": Memory(1_000_000_000, 3_000_000_000, 1_500_000_000), "cold": 500e3},
            {"memory": SMALL, "cold": 500e3},
        ],
    ),
    "disk_too_slow": (
        {"memory": SMALL, "cold": 500e3},
        [{"memory": SMALL, "cold": 1.3e6}, {"cold": 500e3}, {"memory": SMALL, "cold": 500e3, "mount": NFS}],
    ),
    "read_amplification": (
        {"memory": SMALL, "cold": 500e3, "read": 2.0 * 65_568},
        [
            {"memory": SMALL, "cold": 500e3, "read": 1.99 * 65_568},
            {"memory": SMALL, "cold": 1.3e6, "read": 4.0 * 65_568},
            {"memory": SMALL, "cold": 500e3, "read": None},
            {"cold": 500e3, "read": 4.0 * 65_568},
        ],
    ),
    "small_shards": (
        {"shards": 30_000, "warm": flat(1.1e6)},
        [
            {"shards": 30_000},
            {"shards": 20_000, "warm": flat(1.1e6)},
            {"shards": 99, "tokens": 1_000_000, "warm": flat(1.1e6)},
            {"shards": 30_000, "need": None},
        ],
    ),
    "loader_too_slow": ({"warm": flat(1.1e6)}, [{"warm": flat(1.2e6)}, {"warm": flat(1.1e6), "need": None}]),
    "cold_start": (
        {"cold": 900e3},
        [
            {"cold": 999e3},  # 1 s of a thousand
            {"cold": 900e3, "access": "populate"},  # 4 s of reading
            {"cold": 900e3, "memory": SMALL},
            {"cold": 900e3, "need": None},
        ],
    ),
}


def rules_of(found: Findings) -> list[str]:
    return [fix.rule for fix in fixes(found)]


def test_every_rule_has_its_cases() -> None:
    assert [rule.name for rule in TABLE] == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_rule_finds_its_cause(name: str) -> None:
    found = made_up(**CASES[name][0])
    assert name in rules_of(found)
    for fix in fixes(found):
        assert fix.evidence
        assert fix.advice
        assert 1 <= fix.speedup <= MOST


@pytest.mark.parametrize(("name", "settings"), [(name, case) for name, (_, clean) in CASES.items() for case in clean])
def test_a_rule_lets_the_rest_go(name: str, settings: dict[str, Any]) -> None:
    assert name not in rules_of(made_up(**settings))


def test_nothing_is_found_where_nothing_is_slow() -> None:
    assert rules_of(made_up()) == rules_of(made_up(need=None)) == []


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"need": None, "mount": NFS}, "network_filesystem"),
        ({"need": None, "memory": LIMITED}, "memory_limit"),
        ({"need": None, "shards": 30_000, "copy": flat(2.1e9)}, "small_shards"),
    ],
)
def test_what_is_said_without_a_need_promises_nothing(settings: dict[str, Any], rule: str) -> None:
    (fix,) = fixes(made_up(**settings))
    assert (fix.rule, fix.speedup) == (rule, 1.0)


def test_the_gain_is_the_waiting() -> None:
    (fix,) = fixes(made_up(memory=SMALL, cold=250e3))
    assert fix.speedup == pytest.approx(4.0)
    assert "the step waits 75% when cold" in fix.evidence
    amplified = fixes(made_up(memory=SMALL, cold=250e3, read=2.5 * 65_568))
    assert [(fix.rule, fix.speedup) for fix in amplified] == [
        ("disk_too_slow", pytest.approx(4.0)),
        ("read_amplification", pytest.approx(2.5)),
    ]
    assert fixes(made_up(memory=SMALL, cold=1.0))[0].speedup == MOST


def test_no_fix_is_credited_with_what_another_limit_keeps() -> None:
    """From the disk 100 k, from memory 400 k, needed 1 M: memory brings 4x, and a faster loader nothing before that."""
    settings: dict[str, Any] = {"cold": 100e3, "warm": flat(400e3), "copy": flat(500e3)}
    gains = {fix.rule: fix.speedup for fix in fixes(made_up(memory=SMALL, **settings))}
    assert gains == {"disk_too_slow": pytest.approx(4.0), "loader_too_slow": 1.0}
    fitting = {fix.rule: fix.speedup for fix in fixes(made_up(**settings))}
    assert fitting["loader_too_slow"] == pytest.approx(2.5)  # the disk only matters at first


def test_the_limit_is_named_before_the_disk() -> None:
    assert rules_of(made_up(memory=LIMITED, cold=500e3)) == ["memory_limit", "disk_too_slow"]


def test_longer_sequences_are_advised_where_reading_in_order_is_faster() -> None:
    assert "--seq-len 4096" in fixes(made_up(memory=SMALL, cold=500e3))[0].advice
    assert "--seq-len" not in fixes(made_up(memory=SMALL, cold=500e3, sequential=flat(79e6)))[0].advice


def test_reading_ahead_is_advised_against_only_where_it_happens() -> None:
    settings: dict[str, Any] = {"memory": SMALL, "cold": 250e3, "read": 3.0 * 65_568}
    assert "memory='random'" in fixes(made_up(**settings, access="normal"))[1].advice
    assert "--seq-len" in fixes(made_up(**settings, access="random"))[1].advice


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"copy": flat(1.3e6)}, "dtype='uint16'"),
        ({"copy": flat(1.3e6), "dtype": "uint16"}, "one process for each device"),
        ({"copy": flat(9e6)}, "more tokens in a batch"),
    ],
)
def test_advice_for_a_slow_loader_fits_what_was_measured(settings: dict[str, Any], says: str) -> None:
    (fix,) = fixes(made_up(warm=flat(1e6), **settings))
    assert says in fix.advice


def test_the_guide_has_the_table() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "diagnose.md").read_text(encoding="utf-8")
    rows = [f"| `{rule.name}` | {rule.cause} | {rule.evidence} | {rule.threshold} | {rule.advice} |" for rule in TABLE]
    assert [row for row in rows if row not in guide] == []
