"""A lost catalog: made anew from the tables' own files, with the last commit and without one that lost a race."""

from __future__ import annotations

import json
import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError

from durability.errors import Refused
from durability.lake import Lake, restore, tables
from durability.lake.restore import Metadata, candidates
from tests.support.lake import EVERYWHERE, publish
from tests.support.topology import healthy

NOW = datetime(2026, 11, 22, 4, 30, tzinfo=UTC)


def lose_catalog(lake) -> None:
    """As a disk that is gone, or a database dropped, leaves it."""
    lake._tables.catalog.engine.dispose()
    if lake.place.catalog is None:
        Path(lake.location, "catalog.db").unlink()
        return
    import psycopg2

    connection = psycopg2.connect(lake.place.catalog)
    with connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE iceberg_tables, iceberg_namespace_properties")
    connection.close()


def rows(lake) -> dict[str, list]:
    return {name: sorted(lake.scan(table).to_pylist(), key=str) for name, table in tables.TABLES.items()}


@EVERYWHERE
def test_a_lost_catalog_is_made_anew_with_what_was_committed_after_the_backup(lake):
    publish(lake, healthy(cluster="before"))
    lake.backup(NOW)
    publish(lake, healthy(cluster="after"))
    lake.record_failures([("lost", NOW, "down")])
    expected = rows(lake)
    with pytest.raises(Refused, match="has tables, so it isn't lost"):
        restore.restore(lake.location)
    lose_catalog(lake)
    with pytest.raises(Refused, match="make restore LAKE="):
        Lake.open(lake.location).ensure()

    told = "\n".join(restore.restore(lake.location))
    assert f"{lake._tables.namespace}.snapshots: 0000" in told and "newer than the backup" in told
    again = Lake.open(lake.location)
    again.ensure()
    assert rows(again) == expected
    publish(again, healthy(cluster="next"))
    assert {s["cluster"] for s in again.snapshots()} == {"before", "after", "lost", "next"}


def metadata(lake, table=tables.SNAPSHOTS) -> list[Path]:
    return sorted(Path(p.removeprefix("file://")) for p in lake._tables.files.metadata(table))


def lose_race(base: Path) -> Path:
    """The file of a commit on top of `base` that another was quicker than."""
    stated = json.loads(base.read_text())
    entry = {"metadata-file": f"file://{base}", "timestamp-ms": stated["last-updated-ms"]}
    stated["metadata-log"] = [*stated["metadata-log"], entry]
    stated["last-updated-ms"] += 1
    lost = base.with_name(f"{int(base.name[:5]) + 1:05d}-ffffffff-lost.metadata.json")
    lost.write_text(json.dumps(stated))
    return lost


def test_a_commit_that_lost_a_race_is_not_taken_for_the_newest(lake):
    for cluster in "abc":
        publish(lake, healthy(cluster=cluster))
    expected = rows(lake)
    lose_race(metadata(lake)[1])
    lose_catalog(lake)
    restore.restore(lake.location)
    assert rows(Lake.open(lake.location)) == expected


def test_where_nobody_can_tell_both_files_are_named_and_nothing_is_registered(lake):
    publish(lake, healthy(cluster="a"))
    *_, base, last = metadata(lake)
    other = lose_race(base)
    lose_catalog(lake)
    with pytest.raises(Refused, match=f"{last.name} and {other.name}"):
        restore.restore(lake.location)
    assert Lake.open(lake.location)._tables.catalog.list_namespaces() == []
    other.rename(other.with_suffix(".away"))
    restore.restore(lake.location)
    assert [s["cluster"] for s in Lake.open(lake.location).snapshots()] == ["a"]


def test_a_backup_tells_two_ends_apart(lake):
    publish(lake, healthy(cluster="a"))
    lose_race(metadata(lake)[-2])
    lake.backup(datetime.now(UTC))
    lose_catalog(lake)
    restore.restore(lake.location)
    assert [s["cluster"] for s in Lake.open(lake.location).snapshots()] == ["a"]


def test_a_backup_cut_short_is_passed_over_for_the_one_before(lake):
    publish(lake, healthy(cluster="a"))
    lose_race(metadata(lake)[-2])
    whole = lake.backup(datetime.now(UTC))
    Path(lake.backup(datetime.now(UTC) + timedelta(seconds=1)).removeprefix("file://")).write_text('{"format": "dur')
    assert not list(Path(whole.removeprefix("file://")).parent.glob("*.partial"))
    lose_catalog(lake)
    restore.restore(lake.location)
    assert [s["cluster"] for s in Lake.open(lake.location).snapshots()] == ["a"]


def put_back_copy(lake, lost: str, new: str, back_up: bool = False) -> None:
    """Commits a cluster for each letter of `lost`, puts back the catalog from before them, and commits those of `new`.

    back_up: before the copy is put back.
    """
    catalog, copy = Path(lake.location, "catalog.db"), Path(lake.location, "copy")
    shutil.copy(catalog, copy)
    for cluster in lost:
        publish(lake, healthy(cluster=cluster))
    if back_up:
        lake.backup(datetime.now(UTC))
    lake._tables.catalog.engine.dispose()
    copy.replace(catalog)
    for cluster in new:
        publish(lake, healthy(cluster=cluster))


def restored(lake) -> str:
    """The clusters, a letter each, that a lake has after its catalog was lost and restored."""
    lose_catalog(lake)
    restore.restore(lake.location)
    return "".join(s["cluster"] for s in Lake.open(lake.location).snapshots())


@pytest.mark.parametrize("later", ["", "z"])
def test_commits_that_a_put_back_catalog_gave_up_stay_lost(lake, later):
    publish(lake, healthy(cluster="a"))
    publish(lake, healthy(cluster="b"))
    put_back_copy(lake, lost="klm", new="xy")
    lake.backup(datetime.now(UTC))
    for cluster in later:
        publish(lake, healthy(cluster=cluster))
    assert restored(lake) == f"abxy{later}"


@pytest.mark.parametrize("new", ["x", "xy"])
def test_a_backup_from_before_the_catalog_was_put_back_decides_nothing(lake, new):
    publish(lake, healthy(cluster="a"))
    put_back_copy(lake, lost="klm", new=new, back_up=True)
    with pytest.raises(Refused, match="several metadata files"):
        restored(lake)
    assert Lake.open(lake.location)._tables.catalog.list_namespaces() == []


def test_two_first_users_at_once_leave_files_that_differ_in_nothing_that_counts(lake, monkeypatch):
    def not_yet(identifier):
        raise NoSuchTableError(identifier)

    with monkeypatch.context() as patched:
        patched.setattr(lake._tables.catalog, "load_table", not_yet)
        with pytest.raises(TableAlreadyExistsError):
            lake._tables._create(tables.SNAPSHOTS)
    assert [file.name[:5] for file in metadata(lake)] == ["00000", "00000"]
    assert restored(lake) == ""
    publish(Lake.open(lake.location), healthy(cluster="a"))
    assert restored(lake) == "a"


def test_a_damaged_newest_file_is_refused_and_a_half_written_older_one_is_not(lake):
    publish(lake, healthy(cluster="a"))
    last = metadata(lake)[-1]
    last.with_name("00000-half.metadata.json").write_text('{"format-ver')
    lose_catalog(lake)
    damaged = last.with_name("00099-half.metadata.json")
    damaged.write_text('{"format-ver')
    with pytest.raises(Refused, match=r"00099-half\.metadata\.json is damaged"):
        restore.restore(lake.location)
    damaged.unlink()
    assert any("audit.snapshots" in line for line in restore.restore(lake.location))


def test_a_folder_without_a_lake_is_refused_and_left_as_it_was(tmp_path):
    (tmp_path / "thesis.tex").write_text("do not lose")
    with pytest.raises(Refused, match="nothing to restore"):
        restore.restore(str(tmp_path))
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_the_last_backups_stay(lake):
    for day in range(restore.BACKUPS + 3):
        lake.backup(NOW + timedelta(days=day))
    names = sorted(p.name for p in Path(lake.location, "warehouse", restore.FOLDER).iterdir())
    assert len(names) == restore.BACKUPS and names[-1].startswith("20261208T")


def commits(seed: int, count: int, kept: int = 5) -> tuple[dict[str, Metadata], list[str], bool]:
    """A history of commits and of losers against them, files rotated out: the files, the chain, whether its end is a tie."""
    chance = random.Random(seed)
    files: dict[str, Metadata] = {}
    chain: list[str] = []
    tied = False
    for number in range(count):
        log = tuple((name, moment(name)) for name in chain[-kept:])
        losers = [f"{number:05d}-lost{n}" for n in range(chance.choice([0, 0, 0, 1, 2]))]
        winner = f"{number:05d}-won"
        files |= {name: Metadata(name, log, moment(name) + 1) for name in losers}
        files[winner] = Metadata(winner, log, moment(winner))
        chain.append(winner)
        tied = bool(losers)
        for old in chain[:-kept]:
            files.pop(old, None)
    return files, chain, tied


def moment(name: str) -> int:
    return int(name[:5]) * 10


@pytest.mark.parametrize("count", [1, 2, 3, 8, 30])
def test_the_end_of_the_chain_is_found_or_a_tie_is_refused(count):
    for seed in range(60):
        files, chain, tied = commits(seed, count)
        last = files[chain[-1]]
        for pointer in (None, *chain[:-1]):
            left = candidates(files, pointer, moment(pointer) + 5 if pointer else 0)
            assert last in left and (len(left) > 1) == tied
        assert candidates(files, last.address, last.written + 5) == [last]


@pytest.mark.parametrize("kept", [5, 20])
def test_a_given_up_chain_is_never_taken_for_the_one_that_was_backed_up(kept):
    for seed in range(60):
        chance = random.Random(seed)
        before, given_up, new = (chance.randint(1, 12) for _ in range(3))
        log: list[tuple[str, int]] = []
        files, ends = {}, []
        for name, start, count in (("old", 0, before), ("lost", before, given_up), ("new", before, new)):
            log = [entry for entry in log if entry[0].endswith("old")]
            for number in range(start, start + count):
                file = f"{number:05d}-{name}"
                at = (number + (given_up if name == "new" else 0)) * 10
                files[file] = Metadata(file, tuple(log[-kept:]), at)
                log.append((file, at))
            ends.append(files[file])
        _, lost, last = ends
        assert candidates(files, last.address, last.written) == [last]
        assert candidates(files, lost.address, lost.written) != [lost]
        assert last in candidates(files)
