//! Every known kind, by example: the object and the normal form that is read from it, in tests/fixtures/workloads. Set
//! `UPDATE_GOLDEN=1` to write the forms anew, then read the difference.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use pretty_assertions::assert_eq;
use serde_json::Value;

use super::*;
use crate::json;
use crate::workload::path::Step;
use crate::workload::{Container, Role};

pub(super) struct Fixture {
    file: PathBuf,
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) object: Value,
    want: String,
}

pub(super) fn fixtures() -> Vec<Fixture> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/workloads");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(fixture).collect()
}

fn fixture(file: PathBuf) -> Fixture {
    let text = fs::read_to_string(&file).unwrap();
    let all: Value = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let object = all["object"].clone();
    let version = object["apiVersion"].as_str().unwrap();
    let group = version.split_once('/').map_or("", |(group, _)| group).to_owned();
    let kind = object["kind"].as_str().unwrap().to_owned();
    let want = all["want"].as_str().unwrap_or_default().to_owned();
    Fixture { file, group, kind, object, want }
}

#[test]
fn every_kind_has_its_normal_form() {
    let mut seen = BTreeSet::new();
    for fixture in fixtures() {
        let text = fixture.object.to_string();
        let object = json::parse(text.as_bytes()).unwrap();
        let found = templates(&fixture.group, &fixture.kind, &object, &[]);
        let form: String = found.iter().map(written).collect();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            rewrite(&fixture, &form);
        } else {
            assert_eq!(form, fixture.want, "{}", fixture.file.display());
        }
        for template in &found {
            check_places(&object, &fixture.object, template);
        }
        seen.insert((fixture.group, fixture.kind));
    }
    let missing: Vec<_> = known().filter(|(group, kind)| !seen.contains(&((*group).into(), (*kind).into()))).collect();
    assert!(missing.is_empty(), "kinds without an example: {missing:?}");
}

#[test]
fn kinds_stand_once_in_the_table() {
    let all: Vec<_> = known().collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    assert!(all.contains(&("batch", "Job")) && all.contains(&("batch.volcano.sh", "Job")));
}

#[test]
fn further_kinds_add_to_the_table() {
    let object = json::parse(
        br#"{"spec":{"template":{"spec":{"containers":[{"name":"a"}]}},
            "pools":{"x":{"template":{"spec":{"nodeName":"n"}}},"y":{"podSpec":{"containers":[]}},"z":7},
            "list":[null,{"podSpec":{"containers":[{"name":"b"}]}}]}}"#,
    )
    .unwrap();
    let tokens = |pointer: &str| pointer.split('/').skip(1).map(str::to_owned).collect();
    let extra = |group: &str, kind: &str| ExtraKind {
        group: group.to_owned(),
        kind: kind.to_owned(),
        templates: ["/spec/template", "/spec/pools/*/template", "/nothing/*"].map(tokens).to_vec(),
        pod_specs: ["/spec/*/*/podSpec", "/spec/list/1/podSpec", "/spec/template/spec"].map(tokens).to_vec(),
    };
    let found = |group: &str, kind: &str, extra: &[ExtraKind]| -> Vec<(String, bool)> {
        let templates = templates(group, kind, &object, extra);
        templates.iter().map(|template| (template.path.pointer(), template.declared_elsewhere)).collect()
    };
    let want = [
        ("/spec/template", false),
        ("/spec/pools/x/template", false),
        ("/spec/list/1/podSpec", true),
        ("/spec/pools/y/podSpec", true),
    ]
    .map(|(path, elsewhere)| (path.to_owned(), elsewhere));
    for (group, kind) in [("example.test", "Thing"), ("argoproj.io", "Rollout")] {
        let mut all = found(group, kind, &[extra("other.test", "Thing"), extra(group, kind)]);
        all.sort_by_key(|(path, _)| want.iter().position(|(wanted, _)| wanted == path));
        assert_eq!(all, want, "{group} {kind}");
    }
    assert_eq!(found("argoproj.io", "Rollout", &[]).len(), 1);
}

#[test]
fn the_nearest_field_wins_under_whatever_name() {
    let object = json::parse(
        br#"{"spec":{"podPriorityClassName":"low","podResources":{"a":1},"volumes":[1],"nodeSelector":{"a":"b"},
            "templates":[{"container":{},"volumes":[2],"podResources":{"b":1}},
                         {"container":{},"priorityClassName":"high","nodeSelector":{"c":"d"}}]}}"#,
    )
    .unwrap();
    let found = templates("argoproj.io", "Workflow", &object, &[]);
    let at = |place: usize, name| found[place].field(name).map(|piece| piece.path.to_string());
    let fields = ["priorityClassName", "resources", "nodeSelector"];
    let want = ["spec.podPriorityClassName", "spec.templates[0].podResources", "spec.nodeSelector"];
    assert_eq!(fields.map(|name| at(0, name).unwrap()), want);
    let want = ["spec.templates[1].priorityClassName", "spec.podResources", "spec.templates[1].nodeSelector"];
    assert_eq!(fields.map(|name| at(1, name).unwrap()), want);
    assert_eq!(found[0].fields("volumes").count(), 2);
    assert_eq!(at(0, "nodeName"), None);
}

#[test]
fn what_templates_share_is_carried_to_the_first_of_them() {
    let many = vec![serde_json::json!({"container": {"resources": {}}}); SHARING.0 + 1];
    let value = serde_json::json!({"spec": {"podMetadata": {"labels": {"a": "b"}}, "templates": many}});
    let text = value.to_string();
    let object = json::parse(text.as_bytes()).unwrap();
    let found = templates("argoproj.io", "Workflow", &object, &[]);
    let ends = [found.first(), found.get(SHARING.0 - 1), found.last()].map(Option::unwrap);
    assert_eq!(ends.map(|end| end.labels.len()), [1, 1, 0]);
    assert_eq!(ends.map(|end| end.declared_elsewhere), [false, false, true]);
    assert_eq!(ends.map(|end| end.containers.len()), [1, 1, 1]);
}

/// The normal form as text: one line for the template, one for each thing in it.
fn written(template: &Template<'_>) -> String {
    let mut text = template.path.pointer();
    if text.is_empty() {
        text.push_str("the object");
    } else if template.identity != text {
        write!(text, " as {}", template.identity).unwrap();
    }
    text.push('\n');
    let mut line = |line: String| writeln!(text, "  {line}").unwrap();
    for (what, maps) in [("labels", &template.labels), ("annotations", &template.annotations)] {
        let merged: BTreeMap<_, _> = maps.iter().flat_map(|map| map.value.as_object().unwrap().iter()).collect();
        let merged: Vec<_> = merged.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap())).collect();
        let from: Vec<_> = maps.iter().map(|map| map.path.pointer()).collect();
        if !from.is_empty() {
            line(format!("{what} {} from {}", merged.join(", "), from.join(" < ")));
        }
    }
    if template.label_path != template.path.key("metadata").key("labels") {
        line(format!("new labels at {}", template.label_path.pointer()));
    }
    template.levels.iter().for_each(|level| line(format!("level {}", level.path.pointer())));
    template.aliases.iter().for_each(|(name, piece)| line(format!("{name} {}", piece.path.pointer())));
    template.containers.iter().for_each(|container| line(container_line(container)));
    if template.declared_elsewhere {
        line("declared elsewhere".to_owned());
    }
    template.notes.iter().for_each(|note| line(format!("note {}", note.path.pointer())));
    text
}

fn container_line(container: &Container<'_>) -> String {
    let role = match container.role {
        Role::Init => "init",
        Role::Sidecar => "sidecar",
        Role::Main => "main",
        Role::Ephemeral => "ephemeral",
    };
    let mut line = format!("{role} {} {}", container.name, container.path.pointer());
    if let Some(resources) = &container.resources {
        write!(line, " resources {}", resources.path.pointer()).unwrap();
    }
    if let Some((name, count)) = &container.gpu {
        write!(line, " gpu {name} {}", count.path.pointer()).unwrap();
    }
    line
}

fn rewrite(fixture: &Fixture, form: &str) {
    let text = fs::read_to_string(&fixture.file).unwrap();
    let (object, _) = text.split_once("want: |\n").unwrap();
    let form = form.lines().fold(String::new(), |form, line| form + "  " + line + "\n");
    fs::write(&fixture.file, format!("{object}want: |\n{form}")).unwrap();
}

/// Every path of a template leads to the piece that it names, by steps and as a JSON pointer.
pub(super) fn check_places(object: &Json<'_>, value: &Value, template: &Template<'_>) {
    let check = |path: &Path<'_>, piece: &Json<'_>| {
        let found = path.steps().iter().try_fold(object, |here, step| match step {
            Step::Key(key) => here.get(key),
            Step::Index(index) => here.as_array()?.get(*index),
        });
        assert!(found.is_some_and(|found| std::ptr::eq(found, piece)), "{path}");
        assert_eq!(value.pointer(&path.pointer()), Some(&piece.to_value()), "{path}");
    };
    let placed = template.labels.iter().chain(&template.annotations).chain(&template.levels);
    placed.chain(template.aliases.iter().map(|(_, piece)| piece)).for_each(|piece| check(&piece.path, piece.value));
    for container in &template.containers {
        check(&container.path, container.object);
        container.resources.iter().for_each(|piece| check(&piece.path, piece.value));
        container.gpu.iter().for_each(|(_, piece)| check(&piece.path, piece.value));
    }
    for path in template.notes.iter().map(|note| &note.path).chain([&template.path]) {
        assert!(value.pointer(&path.pointer()).is_some(), "{path}");
    }
    assert!(!template.parts.is_empty());
}
