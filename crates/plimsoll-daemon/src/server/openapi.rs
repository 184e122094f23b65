//! The description of the API that clients are made from (OpenAPI 3.1).
//! Never lists a route of its own: they come from the table that is served.

use serde_json::{Map, Value, json};

use super::http::ROUTES;

/// The description.
pub(super) fn description() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method] = operation(route.method, route.path, route.what);
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": "plimsoll serve", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(method: &str, path: &str, what: &str) -> Value {
    let mut operation = json!({
        "summary": what,
        "responses": {
            "default": { "description": "What came of it, or an object with `error`." },
        },
    });
    if path.contains("{id}") {
        let schema = json!({ "type": "integer", "format": "int64" });
        operation["parameters"] = json!([{ "name": "id", "in": "path", "required": true, "schema": schema }]);
    }
    if path == "/api/events" {
        let schema = json!({ "type": "integer", "format": "int64", "default": 0 });
        operation["parameters"] = json!([{ "name": "since", "in": "query", "schema": schema }]);
    }
    if method != "get" {
        operation["security"] = json!([{ "token": [] }]);
    }
    if let Some(schema) = body(path).filter(|_| method == "post") {
        let content = json!({ "application/json": { "schema": schema } });
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    operation
}

/// What a request carries.
fn body(path: &str) -> Option<Value> {
    let one = |name: &str, kind: Value| json!({ "type": "object", "required": [name], "properties": { name: kind }, "additionalProperties": false });
    match path.rsplit('/').next()? {
        "leases" => Some(lease()),
        "step" | "rise" => Some(one("rung", json!({ "type": "integer", "minimum": 0 }))),
        "pin" => Some(one("pinned", json!({ "type": "boolean" }))),
        "priority" => Some(one("priority", priority())),
        "batch" => Some(one("items", json!({ "type": "integer", "minimum": 0 }))),
        _ => None,
    }
}

fn priority() -> Value {
    json!({ "enum": ["background", "low", "normal", "high", "critical"] })
}

fn lease() -> Value {
    let number = || json!({ "type": "integer", "minimum": 0 });
    json!({
        "type": "object",
        "required": ["name", "ladder"],
        "additionalProperties": false,
        "properties": {
            "name": { "type": "string" },
            "kind": { "enum": ["llm", "image", "video", "batch", "other"] },
            "priority": priority(),
            "ladder": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["bytes"],
                    "additionalProperties": false,
                    "properties": {
                        "bytes": number(),
                        "quality": { "type": "number", "minimum": 0, "maximum": 1 },
                        "switch_ms": number(),
                    },
                },
            },
            "devices": { "type": "array", "items": { "type": "string" } },
            "timeout_ms": number(),
            "pinned": { "type": "boolean" },
            "may_be_stopped": { "type": "boolean" },
            "batch_items": number(),
            "pid": number(),
            "ttl_ms": number(),
        },
    })
}
