"""From shapes (`durability.shapes`) to JSON Schema, draft 2020-12."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from durability.shapes import (
    Anything,
    Choice,
    Constant,
    Either,
    Flag,
    ListOf,
    MapOf,
    Member,
    Number,
    Object,
    Shape,
    Text,
    Whole,
)

DRAFT = "https://json-schema.org/draft/2020-12/schema"
PARTLY = "partly-read-"


def file_schema(root: Object) -> dict[str, Any]:
    """The schema of a document of this shape; `root.name` is its format."""
    made = _Maker()
    return {**_head(root.name, root.about), **made.members(root), "$defs": made.definitions}


def topology_schema() -> dict[str, Any]:
    """The schema of `kafka-topology/1`.

    A document that lists nothing as unreadable must be whole. Of one that does any member may be missing or null, but
    for what a snapshot can't do without: which ones lie under the listed paths no schema can say, the reader does.
    """
    from durability.topology.kinds import ROOT

    made = _Maker()
    whole, partly = made.of(ROOT), made.partly(ROOT)
    unreadable = ROOT.members["unreadable"]
    return {
        **_head("kafka-topology/1", "A Kafka cluster at one moment, recorded or planned (docs/topology.md)."),
        "type": "object",
        "required": ["format"],
        "properties": {"format": made.member(ROOT.members["format"]), "unreadable": made.member(unreadable)},
        "if": {"required": ["unreadable"], "properties": {"unreadable": {"minItems": 1}}},
        "then": partly,
        "else": whole,
        "$defs": made.definitions,
    }


def text(schema: dict[str, Any]) -> str:
    """The schema as its file has it."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _head(format_: str, about: str) -> dict[str, Any]:
    return {"$schema": DRAFT, "title": format_, "description": about}


class _Maker:
    """Schemas of shapes; objects become `definitions`, each once."""

    def __init__(self) -> None:
        self.definitions: dict[str, dict] = {}

    def of(self, shape: Shape) -> dict[str, Any]:
        return self._schema(shape, self.of, self.member, "")

    def member(self, member: Member) -> dict[str, Any]:
        inner = self.of(member.shape)
        return _described(_or_null(inner) if member.nullable else inner, member.about)

    def partly(self, shape: Shape) -> dict[str, Any]:
        """Of a document of which something could not be read."""
        return self._schema(shape, self._element, self._partly_member, PARTLY)

    def _element(self, shape: Shape) -> dict[str, Any]:
        return _or_null(self.partly(shape))

    def _partly_member(self, member: Member) -> dict[str, Any]:
        return _described(self.partly(member.shape) if member.vital else self._element(member.shape), member.about)

    def members(self, shape: Object) -> dict[str, Any]:
        return self._members(shape, self.member, list(shape.required))

    def _members(self, shape: Object, of: Callable[[Member], dict], required: list[str]) -> dict[str, Any]:
        properties = {name: of(member) for name, member in shape.members.items()}
        needed = {"required": required} if required else {}
        return {"type": "object", **needed, "properties": properties, **_closed(shape)}

    def _schema(
        self, shape: Shape, element: Callable[[Shape], dict], member: Callable[[Member], dict], prefix: str
    ) -> dict[str, Any]:
        match shape:
            case Object():
                name = prefix + shape.name
                if name not in self.definitions:
                    self.definitions[name] = {}  # its place, before those of the objects in it
                    vital = [name for name, m in shape.members.items() if m.vital]
                    required = vital if prefix else list(shape.required)
                    described = {"description": shape.about} if shape.about else {}
                    self.definitions[name] = {**described, **self._members(shape, member, required)}
                return {"$ref": f"#/$defs/{name}"}
            case ListOf():
                strict = {"minItems": shape.least} if shape.least else {}
                strict |= {"uniqueItems": True} if shape.distinct else {}
                return {"type": "array", "items": element(shape.element), **({} if prefix else strict)}
            case MapOf():
                keys = {"propertyNames": _text(shape.keys)} if shape.keys else {}
                least = {"minProperties": shape.least} if shape.least else {}
                values = {} if isinstance(shape.value, Anything) else {"additionalProperties": element(shape.value)}
                return {"type": "object", **keys, **least, **values}
            case Either():
                return {"anyOf": [element(shape.one), element(shape.several)]}
            case _:
                return _scalar(shape)


def _scalar(shape: Shape) -> dict[str, Any]:
    match shape:
        case Flag():
            return {"type": "boolean"}
        case Whole():
            return {"type": "integer", "minimum": shape.low, "maximum": shape.high}
        case Number():
            limits = {"minimum": shape.low, "maximum": shape.high}
            return {"type": "number", **{name: limit for name, limit in limits.items() if limit is not None}}
        case Constant():
            return {"const": shape.words}
        case Choice():
            return {"type": "string", "enum": list(shape.values)}
        case Text():
            return _text(shape)
    return {}


def _text(shape: Text) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "string"}
    if shape.pattern:
        found["pattern"] = f"^(?:{shape.pattern})$"
    elif not shape.blank:
        found["pattern"] = r"\S"
    if shape.least:
        found["minLength"] = shape.least
    if shape.longest:
        found["maxLength"] = shape.longest
    if shape.but:
        found["not"] = {"enum": list(shape.but)}
    if shape.format == "base64":
        found["contentEncoding"] = "base64"
    elif shape.format:
        found["format"] = shape.format
    return found


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    if isinstance(schema.get("type"), str):
        values = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
        return {**schema, "type": [schema["type"], "null"], **values}
    return {"anyOf": [schema, {"type": "null"}]} if schema and schema.get("type") is None else schema


def _described(schema: dict[str, Any], about: str) -> dict[str, Any]:
    return {**schema, "description": about} if about else schema


def _closed(shape: Object) -> dict[str, Any]:
    return {"additionalProperties": False} if shape.closed else {}
