"""From shapes (`durability.shapes`) to JSON Schema, draft 2020-12."""

from __future__ import annotations

import json
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
    WholeOr,
)

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def file_schema(root: Object) -> dict[str, Any]:
    """The schema of a document of this shape; `root.name` is its format."""
    definitions = _Definitions()
    return {**_head(root.name, root.about), **definitions.object(root), "$defs": definitions}


def topology_schema() -> dict[str, Any]:
    """The schema of `kafka-topology/1`.

    A document that lists nothing as unreadable must be whole. In one that does, any member that isn't vital may be missing
    or null: a schema can't express which members lie under the listed paths, so the reader checks that.
    """
    from durability.topology.kinds import ROOT

    definitions = _Definitions()
    whole, partly = definitions.of(ROOT), definitions.of(ROOT, partly=True)
    members = {name: definitions.member(ROOT.members[name]) for name in ("format", "unreadable")}
    return {
        **_head("kafka-topology/1", "A Kafka cluster at one moment, recorded or planned (docs/topology.md)."),
        "type": "object",
        "required": ["format"],
        "properties": members,
        "if": {"required": ["unreadable"], "properties": {"unreadable": {"minItems": 1}}},
        "then": partly,
        "else": whole,
        "$defs": definitions,
    }


def text(schema: dict[str, Any]) -> str:
    """The schema as its file has it."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _head(format_: str, about: str) -> dict[str, Any]:
    return {"$schema": DRAFT, "title": format_, "description": about}


class _Definitions(dict[str, dict[str, Any]]):
    """Schemas of objects by name. `of` returns a shape's schema and adds those of the objects in it.

    partly: of a document of which something could not be read. Any element or member may then be null or missing, unless it
    is vital.
    """

    def of(self, shape: Shape, partly: bool = False) -> dict[str, Any]:
        match shape:
            case Object():
                name = f"partly-read-{shape.name}" if partly else shape.name
                if name not in self:
                    self[name] = {}  # its place, before those of the objects in it
                    described = {"description": shape.about} if shape.about else {}
                    self[name] = {**described, **self.object(shape, partly)}
                return {"$ref": f"#/$defs/{name}"}
            case ListOf():
                strict = {"minItems": shape.least} if shape.least and not partly else {}
                strict |= {"maxItems": shape.most} if shape.most else {}
                return {"type": "array", "items": self._element(shape.element, partly), **strict}
            case MapOf():
                keys = {"propertyNames": _text(shape.keys)} if shape.keys else {}
                least = {"minProperties": shape.least} if shape.least else {}
                values = (
                    {}
                    if isinstance(shape.value, Anything)
                    else {"additionalProperties": self._element(shape.value, partly)}
                )
                return {"type": "object", **keys, **least, **values}
            case Either():
                return {"anyOf": [self._element(shape.one, partly), self._element(shape.several, partly)]}
            case _:
                return _scalar(shape)

    def object(self, shape: Object, partly: bool = False) -> dict[str, Any]:
        """The schema of an object itself, not a reference to it."""
        required = [name for name, member in shape.members.items() if member.vital] if partly else list(shape.required)
        properties = {name: self.member(member, partly) for name, member in shape.members.items()}
        needed = {"required": required} if required else {}
        closed = {"additionalProperties": False} if shape.closed else {}
        least = {"minProperties": shape.least} if shape.least else {}
        return {"type": "object", **needed, "properties": properties, **least, **closed}

    def member(self, member: Member, partly: bool = False) -> dict[str, Any]:
        schema = self.of(member.shape, partly)
        if (not member.vital) if partly else member.nullable:
            schema = _or_null(schema)
        return {**schema, "description": member.about} if member.about else schema

    def _element(self, shape: Shape, partly: bool) -> dict[str, Any]:
        schema = self.of(shape, partly)
        return _or_null(schema) if partly else schema


def _scalar(shape: Shape) -> dict[str, Any]:
    match shape:
        case Flag():
            return {"type": "boolean"}
        case WholeOr():
            return {"anyOf": [_scalar(Whole(low=shape.low, high=shape.high)), _text(shape.text)]}
        case Whole():
            return {"type": "integer", "minimum": shape.low, "maximum": shape.high}
        case Number():
            names = ("exclusiveMinimum", "exclusiveMaximum") if shape.between else ("minimum", "maximum")
            limits = dict(zip(names, (shape.low, shape.high), strict=True))
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
