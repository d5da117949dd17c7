"""Decodes the classic Streams groups among a document's `groups` into its `streams`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from durability.streams import classic
from durability.streams.classic import Decoded
from durability.streams.internal_topics import by_application
from durability.topology.unreadable import Unreadable, pointer


def classic_entries(
    groups: Iterable[Mapping], topics: Iterable[str], unread_members: Mapping[str, str]
) -> list[Decoded]:
    """The entries of the classic Streams groups among these rows of `groups`, sorted by group.

    topics: the names of the cluster's topics.
    unread_members: by group, why its members couldn't be read. Such a group is a Streams application if it has internal topics.
    """
    rows = sorted((g for g in groups if g.get("group")), key=lambda g: g["group"])
    internal = by_application(topics, {g["group"] for g in rows})
    entries = []
    for row in rows:
        name = row["group"]
        if name in unread_members:
            if name in internal and row.get("type") in ("classic", None):
                entry = {"group": name, "type": "classic"} | ({"state": row["state"]} if row.get("state") else {})
                entries.append(Decoded(entry, {(): unread_members[name]}))
        elif classic.is_streams(row, internal.get(name, ())):
            entries.append(classic.decode(row))
    return entries


def completed(document: dict) -> dict:
    """The document with `streams` entries for the classic Streams groups in `groups` that have none.

    Parts that can't be decoded become `unreadable`. A document without such groups is returned unchanged.
    """
    unreadable = Unreadable(document)
    if not document.get("groups") or unreadable.covers("groups") or unreadable.covers("streams"):
        return document
    streams = list(document.get("streams") or [])
    stated = {entry.get("group") for entry in streams if entry}
    groups, unread_members = [], {}
    for index, row in enumerate(document["groups"]):
        name = (row or {}).get("group")
        if not isinstance(name, str) or name in stated:
            continue
        groups.append(row)
        if unreadable.touches("groups", index):
            unread_members[name] = "; ".join(unreadable.reasons("groups", index))
    if not groups:
        return document
    topics = [t["name"] for t in document.get("topics") or [] if isinstance(t, dict) and t.get("name")]
    entries = classic_entries(groups, topics, unread_members)
    if not entries:
        return document
    more = [
        {"path": pointer(("streams", index, *place)), "reason": reason}
        for index, decoded in enumerate(entries, start=len(streams))
        for place, reason in decoded.unread.items()
    ]
    streams += [decoded.entry for decoded in entries]
    return {**document, "streams": streams, "unreadable": [*(document.get("unreadable") or []), *more]}
