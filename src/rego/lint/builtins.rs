//! Builtins that a policy must not use, and why.

/// Why a function that OPA has is refused, and what to do instead. `None` where the name is no function of OPA that we know of.
pub(super) fn refused(name: &str) -> Option<&'static str> {
    let family = FAMILIES.iter().find(|(prefix, _)| match prefix.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == *prefix,
    });
    family.map(|&(_, reason)| reason)
}

const CLOCK: &str = "a verdict must not depend on the clock, or two replicas and a dry run disagree, and time functions are not \
                     built in; compare what the request says";
const CHANCE: &str = "a verdict must not depend on chance, or two replicas and a dry run disagree; use a property of the object, \
                      such as its uid or name";
const NETWORK: &str = "a verdict must not depend on other servers, and calls to them are not available; put what it needs into \
                       a data document";

/// Names, or beginnings of names with a star, in the order in which they are looked up.
const FAMILIES: &[(&str, &str)] = &[
    ("http.send", NETWORK),
    ("net.lookup_ip_addr", NETWORK),
    ("external_data", "external data providers are not available; put what it needs into a data document"),
    (
        "io.jwt.*",
        "tokens can be neither read nor verified here; the API server has done so, see `input.request.userInfo`",
    ),
    ("crypto.*", "cryptography is not built in; compare plain text, or leave signatures to a tool made for them"),
    ("parse_config*", "it is conftest's own and reads files; put the parsed document into the test"),
    ("parse_combined_config_files", "it is conftest's own and reads files; put the parsed documents into the test"),
    ("opa.runtime", "there is no OPA around this policy; put settings into the data document `parameters`"),
    ("time.*", CLOCK),
    ("test.sleep", CLOCK),
    ("rand.*", CHANCE),
    ("uuid.rfc4122", CHANCE),
    ("uuid.*", "it is not built in; match with `regex.match`"),
    ("rego.*", "a policy cannot read its own text or annotations here; put what it needs into a rule"),
    ("graphql.*", "GraphQL is not built in"),
    ("providers.*", "signing requests is of no use without a network"),
    ("strings.render_template", "templates are not built in; use `sprintf`"),
    ("regex.globs_match", "it is not built in; use `glob.match` or `regex.match`"),
    ("net.cidr_contains_matches", "it is not built in; use `net.cidr_contains` in a loop"),
    ("net.cidr_intersects", "it is not built in; use `net.cidr_contains` both ways"),
    ("net.cidr_overlap", "OPA removed it; use `net.cidr_contains`"),
    ("net.cidr_merge", "it is not built in; list the networks in a data document"),
    ("json.match_schema", "JSON schemas are not built in; check the fields that matter"),
    ("json.verify_schema", "JSON schemas are not built in; check the fields that matter"),
    ("uri.*", "it is not built in; use `split` or `regex.match`"),
    ("re_match", "OPA removed it; use `regex.match`"),
    ("any", "OPA removed it; use `some x in xs`"),
    ("all", "OPA removed it; use `every x in xs`"),
    ("set_diff", "OPA removed it; write `a - b`"),
    ("cast_*", "OPA removed it; use `is_array`, `is_string` and the like"),
    ("plus", "write `a + b`"),
    ("minus", "write `a - b`"),
    ("mul", "write `a * b`"),
    ("div", "write `a / b`"),
    ("rem", "write `a % b`"),
    ("eq", "write `a = b`"),
    ("equal", "write `a == b`"),
    ("neq", "write `a != b`"),
    ("lt", "write `a < b`"),
    ("lte", "write `a <= b`"),
    ("gt", "write `a > b`"),
    ("gte", "write `a >= b`"),
    ("and", "write `a & b`"),
    ("or", "write `a | b`"),
    ("assign", "write `a := b`"),
];

#[cfg(test)]
mod tests {
    use super::refused;

    #[test]
    fn families_are_found_by_their_beginning() {
        assert!(refused("time.now_ns").is_some_and(|why| why.contains("clock")));
        assert!(refused("uuid.rfc4122").is_some_and(|why| why.contains("chance")));
        assert!(refused("uuid.parse").is_some_and(|why| why.contains("not built in")));
        assert_eq!(refused("timer"), None);
        assert_eq!(refused("anything"), None);
    }
}
