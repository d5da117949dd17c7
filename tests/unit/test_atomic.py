"""Files that appear whole, together or not at all, and what killed writers leave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from durability.atomic import atomic_files, unfinished, write_whole
from durability.errors import Refused


def write(folder, text, names=("findings.json", "findings.csv")):
    with atomic_files(folder, *names) as files:
        for file in files:
            file.write(text)


def contents(folder) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


def test_an_error_leaves_the_old_files_and_nothing_else(tmp_path):
    write(tmp_path, "old")
    with pytest.raises(ZeroDivisionError), atomic_files(tmp_path, "findings.json") as (file,):
        file.write("half")
        raise ZeroDivisionError
    assert contents(tmp_path) == {"findings.json": "old", "findings.csv": "old"}
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("obstacle", ["folder", "error"])
def test_files_are_replaced_together_or_not_at_all(tmp_path, monkeypatch, obstacle):
    write(tmp_path, "old", ("findings.json",))
    if obstacle == "folder":
        (tmp_path / "findings.csv").mkdir()
    else:
        replace = type(tmp_path).replace

        def refuse(self, target):
            if self.name == "findings.csv":
                raise PermissionError(13, "Operation not permitted")
            return replace(self, target)

        monkeypatch.setattr(type(tmp_path), "replace", refuse)
    with pytest.raises(Refused, match=r"findings\.csv: can't be replaced"):
        write(tmp_path, "new")
    assert contents(tmp_path) == {"findings.json": "old"}


def test_a_new_file_beside_one_that_cannot_be_replaced_goes_again(tmp_path):
    (tmp_path / "findings.csv").mkdir()
    with pytest.raises(Refused):
        write(tmp_path, "new")
    assert contents(tmp_path) == {}


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path):
    script = (
        "import pathlib, sys, time\nfrom durability.atomic import atomic_files\n"
        "with atomic_files(pathlib.Path(sys.argv[1]), 'findings.json') as (file,):\n"
        "    file.write('half'); file.flush(); print('writing', flush=True); time.sleep(60)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "writing\n"
        write(tmp_path, "another's", ("other.json",))
        assert len(list(tmp_path.glob(".unfinished-*"))) == 1, "a living process keeps its files"
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    (tmp_path / ".findings.json.abc123.tmp").write_text("half")
    write(tmp_path, "whole")
    assert not list(tmp_path.glob(".*"))
    assert contents(tmp_path)["findings.json"] == "whole"


def test_killed_between_two_replacements_the_old_files_come_back(tmp_path):
    write(tmp_path, "old")
    script = (
        "import os, pathlib, sys\nfrom durability.atomic import atomic_files\n"
        "replace, done = pathlib.Path.replace, []\n"
        "def once(self, target):\n"
        "    os._exit(9) if done else done.append(replace(self, target))\n"
        "pathlib.Path.replace = once\n"
        "with atomic_files(pathlib.Path(sys.argv[1]), 'findings.json', 'findings.csv') as files:\n"
        "    [file.write('new') for file in files]\n"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path)]).returncode == 9
    assert set(contents(tmp_path).values()) == {"old", "new"}
    with unfinished(tmp_path):
        assert set(contents(tmp_path).values()) == {"old"}
    assert not list(tmp_path.glob(".*"))


def test_a_link_in_place_of_a_temporary_folder_is_left_alone(tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("do not lose")
    out = tmp_path / "out"
    out.mkdir()
    (out / ".unfinished-x").symlink_to(mine)
    write(out, "new")
    assert (mine / "thesis.tex").exists()


def test_a_file_is_written_whole_into_a_folder_that_is_made(tmp_path):
    with unfinished(tmp_path) as temporary:
        write_whole(tmp_path / "plans" / "index.json", "{}", temporary)
        assert (tmp_path / "plans" / "index.json").read_text() == "{}"
    assert [path.name for path in tmp_path.iterdir()] == ["plans"]


def test_a_files_mode_is_the_users_choice(tmp_path):
    before = os.umask(0o077)
    try:
        write(tmp_path, "new")
    finally:
        os.umask(before)
    assert (tmp_path / "findings.json").stat().st_mode & 0o777 == 0o600


def test_files_in_a_subfolder_are_replaced_together_with_the_others(tmp_path):
    names = ("findings.json", "oscal/poam.json")
    write(tmp_path, "old", names)
    assert contents(tmp_path / "oscal") == {"poam.json": "old"}
    (tmp_path / "oscal" / "results.json").mkdir()
    with pytest.raises(Refused, match=r"oscal/results\.json: can't be replaced"):
        write(tmp_path, "new", (*names, "oscal/results.json"))
    assert contents(tmp_path) == {"findings.json": "old"}
    assert contents(tmp_path / "oscal") == {"poam.json": "old"}
    write(tmp_path, "newer", names)
    assert contents(tmp_path) == {"findings.json": "newer"} and contents(tmp_path / "oscal") == {"poam.json": "newer"}


def test_a_file_in_a_subfolder_comes_back_from_a_killed_run(tmp_path):
    kept = tmp_path / ".unfinished-dead" / "old" / "oscal"
    kept.mkdir(parents=True)
    (kept / "poam.json").write_text("old")
    (tmp_path / "oscal").mkdir()
    with unfinished(tmp_path):
        assert contents(tmp_path / "oscal") == {"poam.json": "old"}
