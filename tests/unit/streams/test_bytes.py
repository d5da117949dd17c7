"""Members' bytes of classic Streams groups: Kafka's own encodings of every version, held against Kafka's own decoding."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durability.runtime import jars
from durability.streams import assignment_info, subscription_info
from durability.streams.consumer_protocol import assignment_user_data, subscription_user_data
from durability.streams.reader import Malformed
from tests import ROOT

SUPPORT = ROOT / "tests" / "support"
ORACLE = SUPPORT / "StreamsBytes.java"
# Written by `StreamsBytes.java encode 708 2` on Kafka 4.3.1's jars: SubscriptionInfo and AssignmentInfo, versions 1 to 11.
EVERY = [json.loads(line) for line in (SUPPORT / "streams_bytes.jsonl").read_text("utf-8").splitlines()]
PUBLISHED = [case for case in EVERY if case["facts"]["version"] >= 6]
DECODE = {"SubscriptionInfo": subscription_info.decode, "AssignmentInfo": assignment_info.decode}
UNFRAME = {"SubscriptionInfo": subscription_user_data, "AssignmentInfo": assignment_user_data}


def kafka(*arguments: str, stdin: str = "") -> list[str]:
    """What Kafka's own classes print, a line each."""
    flags = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m")
    command = [jars.java_command(), *flags, "-cp", f"{jars.ensure('kafka-4.3.1')}/*", str(ORACLE), *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def facts(info) -> dict:
    """What we read; lists in Python's order, not Java's."""
    if isinstance(info, assignment_info.AssignmentInfo):
        return {**asdict(info), "active": sorted(set(info.active)), "standby": sorted(set(info.standby))}
    assert (info.tags is None) == (info.version < 11)
    return {**asdict(info), "with_state": sorted(info.with_state), "tags": info.tags or {}}


def as_printed(stated: dict) -> dict:
    """The same of the facts that the oracle prints; Kafka has no tags where a version has none."""
    if "process" not in stated:
        kept = {name: stated[name] for name in ("version", "error", "next_rebalance_ms")}
        return {**kept, "active": sorted(stated["active"]), "standby": sorted(stated["standby"])}
    with_state = sorted({*stated["offset_sums"], *stated["previous_standby"]})
    return {**{name: stated[name] for name in ("version", "process", "tags")}, "with_state": with_state}


IDS = [f"{c['what']} {c['facts']['version']}" for c in PUBLISHED]


@pytest.mark.parametrize("case", PUBLISHED, ids=IDS)
def test_published_bytes(case):
    data = bytes.fromhex(case["hex"])
    assert UNFRAME[case["what"]](bytes.fromhex(case["member"])) == data
    assert facts(DECODE[case["what"]](data)) == as_printed(case["facts"])


def test_every_version_is_published():
    versions = {(case["what"], case["facts"]["version"]) for case in EVERY}
    assert versions == {(what, version) for what in DECODE for version in range(1, 12)}


@pytest.mark.parametrize("what", sorted(DECODE))
def test_old_versions_are_named(what):
    for case in EVERY:
        if case["what"] == what and (version := case["facts"]["version"]) < 6:
            with pytest.raises(Malformed, match=rf"{what}: version {version} is older than 6"):
                DECODE[what](bytes.fromhex(case["hex"]))


@pytest.mark.slow
def test_what_kafkas_classes_encode_now():
    cases = [json.loads(line) for line in kafka("encode", str(time.time_ns() % 2**31), "60")]
    assert len(cases) == 2 * 11 * 60
    for case in cases:
        assert UNFRAME[case["what"]](bytes.fromhex(case["member"])).hex() == case["hex"]
        if case["facts"]["version"] < 6:
            continue
        assert facts(DECODE[case["what"]](bytes.fromhex(case["hex"]))) == as_printed(case["facts"]), case["hex"]


@pytest.mark.slow
def test_damaged_bytes_that_are_accepted_say_what_kafka_reads():
    """Flipped bits may leave something that is well-formed: then Kafka's classes accept it too, with the same facts."""
    accepted = []
    for case in PUBLISHED:
        data = bytes.fromhex(case["hex"])
        for bit in range(8 * len(data)):
            damaged = bytearray(data)
            damaged[bit // 8] ^= 1 << bit % 8
            try:
                accepted.append((case["what"], bytes(damaged), facts(DECODE[case["what"]](bytes(damaged)))))
            except Malformed:
                continue
    read = [json.loads(line) for line in kafka("decode", stdin="".join(f"{w} {d.hex()}\n" for w, d, _ in accepted))]
    assert len(accepted) > 1000
    for (what, data, ours), theirs in zip(accepted, read, strict=True):
        if theirs is None:  # Kafka only refuses a latest version below the one used, which we don't compare
            latest_supported = int.from_bytes(data[4:8], "big", signed=True)
            assert what == "SubscriptionInfo" and latest_supported < ours["version"], data.hex()
        else:
            assert ours == as_printed(theirs), data.hex()


def read_anything(what: str, data: bytes) -> None:
    """Reads `data` as a member's bytes and as user data; whatever they are, only Malformed may be raised."""
    for read in (DECODE[what], lambda member: DECODE[what](UNFRAME[what](member))):
        try:
            read(data)
        except Malformed as error:
            assert 0 < len(str(error)) < 200 and str(error).isprintable()


@st.composite
def damaged(draw) -> tuple[str, bytes]:
    """A published encoding, framed or not, cut short, with bytes replaced and bits flipped, or lengthened."""
    case = draw(st.sampled_from(PUBLISHED))
    data = bytearray.fromhex(case[draw(st.sampled_from(["hex", "member"]))])
    for _ in range(draw(st.integers(0, 4))):
        position = draw(st.integers(0, len(data) - 1))
        data[position] = draw(st.one_of(st.sampled_from([0, 0x7F, 0x80, 0xFF]), st.integers(0, 255)))
    del data[draw(st.integers(0, len(data))) :]
    return case["what"], bytes(data) + draw(st.binary(max_size=8))


@settings(max_examples=600, deadline=None)
@given(damaged())
def test_damaged_bytes_are_malformed_or_read(found):
    read_anything(*found)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(DECODE)), st.binary(max_size=300))
def test_random_bytes_are_malformed_or_read(what, data):
    read_anything(what, data)
    for version in range(13):
        read_anything(what, version.to_bytes(4, "big") + data)


@pytest.mark.parametrize("case", PUBLISHED, ids=IDS)
def test_every_truncation_is_malformed(case):
    data = bytes.fromhex(case["hex"])
    for length in range(len(data)):
        with pytest.raises(Malformed):
            DECODE[case["what"]](data[:length])
    with pytest.raises(Malformed, match="too many"):
        DECODE[case["what"]](data + b"\0")


@pytest.mark.parametrize("count", [2**31 - 1, -1], ids=hex)
def test_hostile_counts_cost_nothing(count):
    """Every four bytes replaced by a count that would need gigabytes: nothing is allocated, no time passes."""
    import tracemalloc

    tracemalloc.start()
    started = time.monotonic()
    for case in PUBLISHED:
        data = bytes.fromhex(case["member"])
        for position in range(len(data) - 3):
            hostile = data[:position] + count.to_bytes(4, "big", signed=True) + data[position + 4 :]
            read_anything(case["what"], hostile)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000 and time.monotonic() - started < 30


def test_a_large_group_is_read_in_linear_time():
    """100,000 standby tasks: some 2 MB of one member's bytes."""
    tasks = b"".join(bytes(3) + b"\1" + n.to_bytes(4, "big") + bytes(8) for n in range(100_000))
    data = bytes.fromhex("0000000b0000000b00000000") + (100_000).to_bytes(4, "big") + tasks + bytes(16) + bytes(8)
    started = time.monotonic()
    assert len(assignment_info.decode(data).standby) == 100_000
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("what", sorted(DECODE))
@pytest.mark.parametrize("version", [0, -1, 12, 1000])
def test_an_unknown_version_is_named(what, version):
    data = version.to_bytes(4, "big", signed=True) + bytes(60)
    with pytest.raises(Malformed, match=rf"{what}: version {version} isn't known; 6 to 11 are"):
        DECODE[what](data)
