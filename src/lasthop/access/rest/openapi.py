"""The OpenAPI 3.1 document, made from the table of operations and the types that it names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import msgspec

from lasthop.access.rest.operations import Operation
from lasthop.access.rest.problems import Problem

Json: TypeAlias = dict[str, Any]

REFUSALS = {
    400: "The request is malformed; the error names the field",
    401: "No credential, or an unknown one",
    403: "The credential does not allow this",
    404: "No such message, device or credential in the app",
    409: "In conflict with an earlier request or the present state",
    413: "A size or a number is above its limit",
    415: "The body's type or coding is not supported",
    422: "deliver_before has passed, or the device's preferences allow no delivery as asked",
    429: "The caller's quota is used up; Retry-After says for how long",
    503: "The gateway is overloaded, and Retry-After says for how long; with the code"
    " outcome_open, the request may still be done, and the error says how to find out",
}
ANY_OPERATION = (400, 401, 403, 429, 503)
_SUCCESS = {200: "Done", 201: "Created", 202: "Durable, and on its way"}
_TEMPLATE = "#/components/schemas/{name}"

_DESCRIPTION = """Publish messages to devices that are often offline, and follow each delivery.

Whatever is answered with 2xx is durable. A request is done completely or not at all. A refusal
means not at all, except with the code `outcome_open`: the store could not be written, and it may be
done later. A request with an `Idempotency-Key` may be repeated; it is done once. In one line:
`curl -d 'text' HOST/TOPIC`."""


def document(operations: Sequence[Operation], version: str) -> Json:
    """Return the OpenAPI document of the operations."""
    operations = [operation.resolved() for operation in operations]
    schemas = _Schemas(operations)
    paths: dict[str, Json] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(
            operation, schemas
        )
    return {
        "openapi": "3.1.0",
        "info": {"title": "lasthop", "version": version, "description": _DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "responses": {str(s): _refusal(text, schemas) for s, text in REFUSALS.items()},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "basic": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "Any user name; the token as password",
                },
            },
        },
        "security": [{"bearer": []}, {"basic": []}, {}],
    }


class _Schemas:
    """The schemas of all types that the operations use, by type."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        kinds: list[Any] = [Problem]
        for operation in operations:
            kinds += [kind for kind in operation.answers.values() if kind is not bytes]
            kinds += [operation.body] if operation.body not in (None, bytes) else []
        kinds = list(dict.fromkeys(_parts(kinds)))
        found, self.components = msgspec.json.schema_components(kinds, ref_template=_TEMPLATE)
        self._of: dict[Any, Json] = dict(zip(kinds, found, strict=True))

    def of(self, kind: Any) -> Json:
        """Return the schema of a type; for a union, the choice between the schemas of its
        members."""
        parts = _parts([kind])
        if len(parts) == 1:
            return self._of[parts[0]]
        return {"anyOf": [self._of[part] for part in parts]}


def _parts(kinds: Iterable[Any]) -> list[Any]:
    """Types, with choices taken apart: msgspec would want unions tagged."""
    return [part for kind in kinds for part in (kind if isinstance(kind, tuple) else (kind,))]


def _operation(operation: Operation, schemas: _Schemas) -> Json:
    said: Json = {
        "operationId": operation.id,
        "summary": operation.summary,
        "description": f"Needs a credential with the scope `{operation.scope}`.",
        "tags": [operation.path.split("/")[2]],
        "parameters": [*_path(operation), *_query(operation), *_headers(operation)],
        "responses": {
            **{str(s): _success(s, kind, schemas) for s, kind in operation.answers.items()},
            **{str(s): {"$ref": f"#/components/responses/{s}"} for s in _refusals(operation)},
        },
    }
    if operation.body is not None:
        said["requestBody"] = {
            "required": not operation.optional,
            "content": _content(operation, schemas),
        }
    return said


def _refusals(operation: Operation) -> list[int]:
    large = () if operation.body is None else (413,)
    return sorted({*ANY_OPERATION, *operation.refusals, *large})


def _content(operation: Operation, schemas: _Schemas) -> Json:
    if operation.body is bytes:
        return {"*/*": {"schema": {"type": "string", "format": "binary"}}}
    one = schemas.of(operation.body)
    if not operation.lines:
        return {"application/json": {"schema": one}}
    many = {"type": "array", "items": one, "minItems": 1}
    return {
        "application/json": {"schema": {"anyOf": [one, many]}},
        "application/x-ndjson": {
            "schema": {"type": "string", "description": "One message on each line"}
        },
    }


def _success(status: int, kind: Any, schemas: _Schemas) -> Json:
    if kind is bytes:
        content: Json = {"*/*": {"schema": {"type": "string", "format": "binary"}}}
    else:
        content = {"application/json": {"schema": schemas.of(kind)}}
    return {"description": _SUCCESS[status], "content": content}


def _refusal(text: str, schemas: _Schemas) -> Json:
    return {
        "description": text,
        "content": {"application/json": {"schema": schemas.of(Problem)}},
    }


def _path(operation: Operation) -> list[Json]:
    schema = {"type": "string", "minLength": 1}
    return [
        {"name": name, "in": "path", "required": True, "schema": schema, "description": about}
        for name, about in operation.path_parameters.items()
    ]


def _query(operation: Operation) -> list[Json]:
    if operation.query is None:
        return []
    schema = msgspec.json.schema_components([operation.query])[1][operation.query.__name__]
    return [
        {
            "name": name,
            "in": "query",
            "required": name in schema["required"],
            "schema": _without_null(kind),
        }
        for name, kind in schema["properties"].items()
    ]


def _without_null(schema: Json) -> Json:
    """Return a query parameter's schema without null: an omitted parameter is absent, never
    null."""
    schema = {k: v for k, v in schema.items() if not (k == "default" and v is None)}
    choices = [s for s in schema.get("anyOf", []) if s != {"type": "null"}]
    if len(choices) == 1:
        schema |= choices[0]
        del schema["anyOf"]
    if "enum" in schema:
        schema["enum"] = [value for value in schema["enum"] if value is not None]
    return schema


def _headers(operation: Operation) -> list[Json]:
    text = {"type": "string", "pattern": r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"}
    app = {
        "name": "X-App",
        "in": "header",
        "description": "Act in this app; administrators may name any",
        "schema": text,
    }
    if not operation.once:
        return [app]
    once = {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "A request that is repeated with the same key is done once",
        "schema": {"type": "string", "pattern": r"^[!-~]{1,200}$"},
    }
    return [app, once]
