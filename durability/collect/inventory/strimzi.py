"""An inventory of Strimzi's `Kafka` resources, as `kubectl get kafka -A -o yaml` (or `-o json`) exports them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from durability.collect.inventory import files
from durability.errors import BadInput
from durability.policy.inventory import Entry, InventorySource, Listing
from durability.policy.yamlfile import shown

GROUP, KIND = "kafka.strimzi.io/", "Kafka"
SUFFIXES = (".json", ".yaml", ".yml")
MAX_FILES = 10_000
EXPORT = "export it with `kubectl get kafka -A -o yaml`"
# All scalars stay text: a cluster may be called "on" or 1e3. An alias refers to the same object, so nothing expands.
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def read(source: InventorySource) -> Listing:
    """The clusters of a file, or of the files below a folder. Raises BadInput for an unusable file, or if there is no cluster."""
    assert source.path is not None
    path, hashes = source.path, []
    entries: list[Entry] = []
    first: dict[str, Path] = {}
    for file in _files(path):
        found = files.content(file)
        hashes.append((file.name if file == path else file.relative_to(path).as_posix(), files.sha256(found)))
        for entry in _entries(file, _documents(file, files.text(file, found)), source.name, alone=file == path):
            name = entry.names[-1]
            if name in first:
                where = "twice" if first[name] == file else f"in {first[name].name}, too"
                problem = (
                    f"{shown(entry.names[1])} is there {where}; list each Kubernetes cluster as an inventory of its own"
                )
                raise BadInput(file, "", problem)
            first[name] = file
            entries.append(entry)
    if not entries and not source.allow_empty:
        raise BadInput(path, "", f"the inventory lists no cluster; {EXPORT}, or {files.ALLOW_EMPTY}")
    whole = hashes[0][1] if path.is_file() else files.sha256("".join(f"{h}  {n}\n" for n, h in hashes).encode())
    return Listing(source, entries, sha256=whole)


def _files(path: Path) -> list[Path]:
    """The file, or those of a folder and its subfolders. Hidden ones are left out."""
    if not path.is_dir():
        return [path]
    found: list[Path] = []
    walked: set[str] = set()
    for folder, inner, names in os.walk(path, onerror=_unreadable, followlinks=True):
        # A link may lead back to a folder above.
        inner[:] = [] if (real := os.path.realpath(folder)) in walked else [n for n in inner if not n.startswith(".")]
        if real not in walked:
            found += [Path(folder, n) for n in names if Path(n).suffix in SUFFIXES and not n.startswith(".")]
        walked.add(real)
        if len(found) > MAX_FILES:
            raise BadInput(path, "", f"has more than {MAX_FILES:,} files; {EXPORT} into a folder of its own")
    found.sort(key=lambda file: file.relative_to(path).as_posix())
    if not found:
        raise BadInput(path, "", f"no file ends in {', '.join(SUFFIXES)}; {EXPORT}")
    return found


def _unreadable(error: OSError) -> None:
    raise BadInput(
        Path(error.filename), "", f"the folder can't be read: {error.strerror}; let the audit's user read it"
    )


def _documents(file: Path, text: str) -> list[Any]:
    """The documents of a YAML or JSON file."""
    try:
        if text.lstrip().startswith("{"):
            return [json.loads(text)]
        return [document for document in yaml.load_all(text, Loader=_LOADER) if document]
    except json.JSONDecodeError as error:
        raise BadInput(
            file, f"line {error.lineno}, column {error.colno}", f"isn't JSON: {error.msg}; {EXPORT}"
        ) from None
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None) or "wrong characters"
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise BadInput(file, where, f"isn't YAML: {problem}; {EXPORT}") from None
    except RecursionError:
        raise BadInput(file, "", f"is nested too deeply; {EXPORT}") from None


def _entries(file: Path, documents: list[Any], source: str, alone: bool) -> Iterator[Entry]:
    """alone: a folder may also have resources of other kinds; a file by itself needs `Kafka` resources, or an empty list."""
    kinds: set[str] = set()
    found = 0
    for resource in _resources(file, documents):
        kinds.add(f"{resource.get('apiVersion')} {resource['kind']}")
        if resource["kind"] == KIND and str(resource.get("apiVersion")).startswith(GROUP):
            found += 1
            yield _entry(file, resource, source)
    if not documents or (alone and kinds and not found):
        there = f" (found: {', '.join(map(shown, sorted(kinds)[:5]))})" if kinds else ""
        raise BadInput(file, "", f"has no {KIND} resource of Strimzi{there}; {EXPORT}")


def _resources(file: Path, documents: list[Any]) -> Iterator[dict[str, Any]]:
    for number, document in enumerate(documents, 1):
        if not isinstance(document, dict) or not document.get("kind"):
            raise BadInput(file, f"document {number}", f"isn't a Kubernetes resource, which has a `kind`; {EXPORT}")
        yield from _of_list(file, f"document {number}", document) if _is_list(document) else [document]


def _is_list(resource: dict[str, Any]) -> bool:
    return str(resource["kind"]).endswith("List")


def _of_list(file: Path, where: str, whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The resources of a list, which must be whole: a part of it would hide the clusters of the others."""
    _check_whole(file, where, whole.get("metadata"))
    if "items" not in whole:
        raise BadInput(file, where, f"is a {shown(whole['kind'])} without `items`; {EXPORT}")
    items = whole["items"]
    # In YAML, an empty list without its brackets is an empty text here.
    if not isinstance(items, list) and items not in (None, "", "null"):
        raise BadInput(file, f"{where}, /items", f"isn't a list; {EXPORT}")
    for place, item in enumerate(items if isinstance(items, list) else []):
        if not isinstance(item, dict):
            raise BadInput(file, f"{where}, /items/{place}", f"isn't a Kubernetes resource; {EXPORT}")
        # The items of a KafkaList have no kind of their own.
        one = {"kind": str(whole["kind"])[:-4], "apiVersion": whole.get("apiVersion"), **item}
        yield from _of_list(file, f"{where}, /items/{place}", one) if _is_list(one) else [one]


def _check_whole(file: Path, where: str, metadata: Any) -> None:
    """Raises BadInput for a page of a list, by the API's ListMeta: kubectl puts pages together, and other clients may not."""
    stated = metadata if isinstance(metadata, dict) else {}
    if stated.get("continue") or str(stated.get("remainingItemCount") or 0) not in ("0", "null", "~"):
        raise BadInput(file, where, f"is a part of a list, and more of it follows (metadata.continue); {EXPORT}")


def _entry(file: Path, resource: dict[str, Any], source: str) -> Entry:
    metadata, status = resource.get("metadata"), resource.get("status")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str):
        raise BadInput(file, "", f"a {KIND} resource has no metadata.name; {EXPORT}")
    files.check_name(file, "", "metadata.name", name)
    namespace = str(metadata.get("namespace") or "default") if isinstance(metadata, dict) else "default"
    files.check_name(file, "", "metadata.namespace", namespace)
    cluster_id = status.get("clusterId") if isinstance(status, dict) else None
    qualified = f"{namespace}/{name}"
    return Entry((name, qualified, f"{source}:{qualified}"), cluster_id if isinstance(cluster_id, str) else None)
