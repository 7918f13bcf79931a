//! The schema of `status.conditions`, as Kubernetes' own kinds have it.

use schemars::{Schema, SchemaGenerator, json_schema};

/// For `#[schemars(schema_with = "operator::condition::schema")]` on a field of conditions: a map
/// by type, so that several controllers can each apply their own.
pub fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "description": "What is known about the object.",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "description": "One thing that is known, with when and why.",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {
                    "type": "string",
                    "description": "What it is about.",
                    "maxLength": 316,
                },
                "status": {
                    "type": "string",
                    "description": "Whether it holds.",
                    "enum": ["True", "False", "Unknown"],
                },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                    "description": "The generation of the object that this speaks of.",
                },
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When the status last changed.",
                },
                "reason": {
                    "type": "string",
                    "description": "Why, as one word for machines.",
                    "minLength": 1,
                    "maxLength": 1024,
                },
                "message": {
                    "type": "string",
                    "description": "Why, as a sentence for people.",
                    "maxLength": 32768,
                },
            },
        },
    })
}
