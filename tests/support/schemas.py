"""Checks that the JSON Schemas and the readers agree: a document that one of them refuses is refused by the other.

Every document in the tests of the readers is also validated with its schema: `agreeing` wraps the reader.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, ValidationError, validators

from durability.errors import BadInput
from durability.policy import load_clusters, load_frameworks, load_policy, load_waivers
from durability.schemas import schema
from durability.topology import validate

FILES = {load_policy: "policy", load_waivers: "waivers", load_clusters: "clusters", load_frameworks: "frameworks"}

BEYOND_POLICY = {
    "a tier that isn't defined": "is not defined",
    "a tier that no topic can meet": "can never have that many in sync",
    "a line that is never reached": "is never reached",
    "a range that is empty": "is below min",
    "an expression that RE2 doesn't know": "is not a valid RE2 expression",
    "a control that there isn't": "matches no control",
    "a window that ends before it begins": "is not after `from`",
    "a waiver that its owner approved": "is the owner: name who else approved it",
    "an approval after the last day": "is after its last day",
    "a day that isn't in the calendar": r"expected a (day|moment) such as .* found .*[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "a number written another way": r"expected a whole number, found a number \(\"0x|found a decimal number \(\"-?\d+\.0\"",
    "a key or an identity twice": "is there twice",
    "a cluster's id that findings on an inventory have": "findings on an inventory have cluster",
}
"""Reasons to refuse a policy, waivers, clusters or frameworks file that no schema can express, in the reader's words."""
BEYOND_TOPOLOGY = {
    "a replica on a broker that isn't described": "is not described under /brokers",
    "an identity twice": "is described twice",
    "an integer written as 2.0": r"found the number -?\d+\.0",
    "a moment that isn't in the calendar": r'expected an RFC 3339 time .* found the text "\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d',
    "what has no canonical JSON": "no JSON in UTF-8 can be made of it",
    "no replicas, in a topic that isn't diskless": "expected at least one broker, found an empty list",
}
BEYOND_PARTLY_READ = {
    "missing, and not what is unreadable": "found (null|no such member)",
    "empty, and not what is unreadable": "found an empty list",
}
"""The same for a topology document that lists something as unreadable. The schema can't follow the paths."""


def unnamed(name: str, document: Any) -> list[str]:
    """What is wrong with a document, or not named by the schema: each object with `properties` allows no others."""

    def closed(node: Any) -> Any:
        if isinstance(node, dict):
            more = {"additionalProperties": False} if isinstance(node.get("properties"), dict) else {}
            return {key: closed(value) for key, value in node.items()} | more
        return [closed(value) for value in node] if isinstance(node, list) else node

    return [
        f"{error.json_path}: {error.message}"
        for error in Draft202012Validator(closed(schema(name))).iter_errors(document)
    ]


def _ecma_pattern(validator, pattern, instance, _schema):
    """ECMA-262's `$` matches only at the end of the text. Python's also matches before a final line break."""
    if isinstance(instance, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


Validator = validators.extend(Draft202012Validator, {"pattern": _ecma_pattern})


@cache
def validator(name: str) -> Any:
    made = schema(name)
    Validator.check_schema(made)
    return Validator(made)


def problems(name: str, document: object) -> list[str]:
    """The schema's problems with a document."""
    return [f"{error.json_path}: {error.message}" for error in validator(name).iter_errors(document)]


def agreeing(read: Callable, *args: Any) -> Any:
    """The result or error of a reader. Fails if its schema disagrees.

    read: `load_policy` or another loader of FILES with a path, or `validate` with a document and its source.
    """
    if read is validate:
        name, document, beyond = "topology", args[0], dict(BEYOND_TOPOLOGY)
        if isinstance(document, dict) and document.get("unreadable"):
            beyond |= BEYOND_PARTLY_READ
            whole = {key: value for key, value in document.items() if key != "unreadable"}
            with suppress(BadInput):  # the exceptions would hide this disagreement
                agreeing(validate, whole, args[1])
    else:
        try:
            name, document, beyond = FILES[read], yaml_document(Path(args[0])), dict(BEYOND_POLICY)
        except (yaml.YAMLError, ValueError, RecursionError, OSError):
            return read(*args)  # not a document, so the schema doesn't apply
    try:
        result = read(*args)
    except BadInput as refusal:
        if not problems(name, document):
            assert beyond_schema(refusal, beyond.values()), f"the schema lets pass: {refusal}"
        raise
    assert problems(name, document) == []
    return result


def beyond_schema(refusal: BadInput, beyond: Iterable[str]) -> bool:
    return any(re.search(pattern, refusal.problem) for pattern in beyond)


def yaml_document(path: Path) -> object:
    """A YAML file as JSON would have it: keys and times are text. Raises ValueError for YAML that the readers refuse."""
    content = path.read_text(encoding="utf-8-sig")
    if "&" in content or "!!" in content or content.startswith("[[["):
        raise ValueError("anchors, tags, depth")
    node = yaml.compose(content, Loader=yaml.SafeLoader)
    return _plain(node) if node is not None else None


def _plain(node: yaml.Node) -> object:
    if isinstance(node, yaml.MappingNode):
        return {key.value: _plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item) for item in node.value]
    if node.tag.endswith((":int", ":float", ":bool", ":null")):
        return yaml.SafeLoader("").construct_object(node)
    return node.value


def write_as_yaml(path: Path, document: object) -> Path:
    """A document as a YAML file. JSON is valid YAML."""
    path.write_text(json.dumps(document, ensure_ascii=True), encoding="utf-8")
    return path
