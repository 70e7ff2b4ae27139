//! The shape of a tool's arguments, as rules see them, from the tool's JSON Schema. Pure.

use std::collections::BTreeMap;

use serde_json::Value;

/// Deeper parts of the arguments are JSON text to a rule.
const DEPTH_MAX: usize = 8;
/// A schema comes from an MCP server, and its references can multiply.
const VISITS_MAX: usize = 1024;

/// Fields by the names that rules know them under.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fields(pub BTreeMap<String, Field>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    /// The name in the arguments.
    pub argument: String,
    pub shape: Shape,
    pub required: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shape {
    One(Scalar),
    /// An array, or one value where the schema takes either.
    Many(Scalar),
    Record(Fields),
    /// An array of objects: of each field the set of its values, since a rule cannot go through
    /// a set of records.
    Rows(Fields),
    /// Canonical JSON.
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    Text,
    Long,
    Decimal,
    Bool,
}

impl Fields {
    /// Reads the JSON Schema of a tool's arguments.
    pub fn of(parameters: &Value) -> Fields {
        Reader { root: parameters, visits: 0 }.fields(parameters, 0)
    }

    /// Whether some field shows this argument.
    pub fn shows(&self, argument: &str) -> bool {
        self.by_argument(argument).is_some()
    }

    pub fn by_argument(&self, argument: &str) -> Option<&Field> {
        // The name that a rule uses differs from the argument's in its ending alone.
        let same = self.0.get(argument).filter(|it| it.argument == argument);
        same.or_else(|| self.0.get(&as_json(argument)).filter(|it| it.argument == argument))
    }
}

fn as_json(name: &str) -> String {
    format!("{name}_json")
}

struct Reader<'a> {
    root: &'a Value,
    visits: usize,
}

/// A shape, and whether null may stand in its place.
struct Seen {
    shape: Shape,
    nullable: bool,
}

impl<'a> Reader<'a> {
    fn fields(&mut self, schema: &'a Value, depth: usize) -> Fields {
        let schema = self.resolve(schema);
        let mut fields = Fields::default();
        let Some(properties) = schema["properties"].as_object() else { return fields };
        let required = schema["required"].as_array();
        for (name, property) in properties {
            let Seen { shape, nullable } = self.shape(property, depth + 1);
            let listed = required.is_some_and(|it| it.iter().any(|it| it.as_str() == Some(name)));
            let known = match shape {
                Shape::Json => as_json(name),
                _ => name.clone(),
            };
            // An argument that is really named so keeps its name.
            if known != *name && properties.contains_key(&known) {
                continue;
            }
            let required = listed && !nullable;
            fields.0.insert(known, Field { argument: name.clone(), shape, required });
        }
        fields
    }

    fn shape(&mut self, schema: &'a Value, depth: usize) -> Seen {
        self.visits += 1;
        let opaque = Seen { shape: Shape::Json, nullable: true };
        if depth > DEPTH_MAX || self.visits > VISITS_MAX {
            return opaque;
        }
        let schema = self.resolve(schema);
        match &schema["type"] {
            Value::String(one) => {
                return Seen { shape: self.typed(schema, one, depth), nullable: false };
            }
            Value::Array(types) => {
                let names: Vec<&str> =
                    types.iter().filter_map(Value::as_str).filter(|it| *it != "null").collect();
                let nullable = names.len() < types.len();
                let shape = match names.as_slice() {
                    [one] => self.typed(schema, one, depth),
                    ["integer", "number"] | ["number", "integer"] => Shape::One(Scalar::Decimal),
                    _ => Shape::Json,
                };
                return Seen { shape, nullable };
            }
            _ => {}
        }
        if let Some(values) = schema["enum"].as_array() {
            return one_of(values);
        }
        if let Some(value) = schema.get("const") {
            return one_of(std::slice::from_ref(value));
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(variants) = schema[key].as_array() {
                return self.variants(variants, depth);
            }
        }
        match schema["allOf"].as_array().map(Vec::as_slice) {
            Some([one]) => self.shape(one, depth + 1),
            Some(_) => opaque,
            None if schema["properties"].is_object() => {
                Seen { shape: self.typed(schema, "object", depth), nullable: true }
            }
            None => opaque,
        }
    }

    fn typed(&mut self, schema: &'a Value, name: &str, depth: usize) -> Shape {
        match name {
            "string" => Shape::One(Scalar::Text),
            "integer" => Shape::One(Scalar::Long),
            "number" => Shape::One(Scalar::Decimal),
            "boolean" => Shape::One(Scalar::Bool),
            "array" => match schema.get("items").map(|it| self.shape(it, depth + 1)) {
                Some(Seen { shape: Shape::One(of), nullable: false }) => Shape::Many(of),
                Some(Seen { shape: Shape::Record(fields), nullable: false }) => Shape::Rows(fields),
                _ => Shape::Json,
            },
            "object" if schema["properties"].is_object() => {
                let fields = self.fields(schema, depth);
                if fields.0.is_empty() { Shape::Json } else { Shape::Record(fields) }
            }
            _ => Shape::Json,
        }
    }

    fn variants(&mut self, variants: &'a [Value], depth: usize) -> Seen {
        let mut nullable = false;
        let mut shapes: Vec<Shape> = Vec::new();
        for variant in variants {
            if self.resolve(variant)["type"] == "null" {
                nullable = true;
                continue;
            }
            let seen = self.shape(variant, depth + 1);
            nullable |= seen.nullable;
            if !shapes.contains(&seen.shape) {
                shapes.push(seen.shape);
            }
        }
        let shape = match shapes.as_slice() {
            [_] => shapes.remove(0),
            [Shape::One(one), Shape::Many(many)] | [Shape::Many(many), Shape::One(one)]
                if one == many =>
            {
                Shape::Many(*one)
            }
            _ => Shape::Json,
        };
        Seen { shape, nullable }
    }

    /// What a schema refers to, within its own document.
    fn resolve(&self, schema: &'a Value) -> &'a Value {
        let mut at = schema;
        // Longer chains than this go round.
        for _ in 0..16 {
            let Some(reference) = at.get("$ref").and_then(Value::as_str) else { return at };
            match reference.strip_prefix('#').and_then(|it| self.root.pointer(it)) {
                Some(next) => at = next,
                None => return &Value::Null,
            }
        }
        &Value::Null
    }
}

fn one_of(values: &[Value]) -> Seen {
    let nullable = values.contains(&Value::Null);
    let mut values = values.iter().filter(|it| !it.is_null()).peekable();
    let texts = values.peek().is_some() && values.all(Value::is_string);
    Seen { shape: if texts { Shape::One(Scalar::Text) } else { Shape::Json }, nullable }
}
