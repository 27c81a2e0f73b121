//! The schema has what the parser has.

use super::*;
use crate::config::parse;

/// Every schema in the schema.
fn each<'s>(schema: &'s Value, path: &str, visit: &mut dyn FnMut(&str, &'s Value)) {
    visit(path, schema);
    for (name, inner) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        each(inner, &format!("{path}.{name}"), visit);
    }
    for word in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(word).filter(|inner| inner.is_object()) {
            each(inner, &format!("{path}[]"), visit);
        }
    }
}

#[test]
fn every_field_is_described_and_nothing_else_is_taken() {
    let (schema, mut fields) = (schema(), 0);
    each(&schema, "", &mut |path, schema| {
        assert!(schema.is_object(), "{path} is not known to the schema");
        if schema.get("properties").is_some() {
            assert_eq!(schema["additionalProperties"], false, "{path}");
        }
        let is_element = path.ends_with("[]");
        let is_rule = RuleId::ALL.iter().any(|rule| path == format!(".rules.{rule}"));
        if !is_element && !is_rule {
            assert!(
                schema["description"].as_str().is_some_and(|text| text.ends_with('.')),
                "{path} has no description"
            );
        }
        fields += 1;
    });
    assert!(fields > 70, "{fields}");
}

#[test]
fn what_is_not_given_has_the_default_that_the_schema_tells() {
    let mut document = json!({"apiVersion": parse::API_VERSION, "kind": parse::KIND});
    for (name, field) in schema()["properties"].as_object().unwrap() {
        if let Some(default) = field.get("default") {
            document[name] = default.clone();
        }
    }
    document["declarations"] = schema()["properties"]["declarations"]["properties"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, field)| (name.clone(), field["default"].clone()))
        .collect();
    // JSON is YAML.
    assert_eq!(parse::parse(&document.to_string()).unwrap(), Config::default());
}
