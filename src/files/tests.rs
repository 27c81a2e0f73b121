//! Real files in a folder of their own, edited, swapped and removed under a running watch.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use pretty_assertions::assert_eq;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::*;
use crate::facts::{Event, Labels};
use crate::feed::recorder::{Record, Told, recorder};

const SOON: Duration = Duration::from_millis(1);

const GOOD: &str = "apiVersion: slicegate.io/v1alpha1\nkind: Config\nenforcement: warn\n";

/// A watch over a file or folder.
struct Scene {
    folder: TempDir,
    record: Record,
    task: JoinHandle<()>,
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Scene {
    /// The folder is prepared first; the watch is of a path in it.
    fn facts(path: &str, prepare: impl FnOnce(&Path)) -> Self {
        let folder = TempDir::new().unwrap();
        prepare(folder.path());
        let (sink, record) = recorder();
        let watch = watch_facts(folder.path().join(path), SOON, sink, CancellationToken::new());
        Self { folder, record, task: tokio::spawn(watch) }
    }

    fn policy(prepare: impl FnOnce(&Path)) -> Self {
        let folder = TempDir::new().unwrap();
        prepare(folder.path());
        let (sink, record) = recorder();
        let watch = watch_policy(folder.path().join("config.yaml"), None, SOON, sink, CancellationToken::new());
        Self { folder, record, task: tokio::spawn(watch) }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// All nodes, where the next that is told is the whole of the facts.
    async fn nodes(&mut self) -> Vec<String> {
        let Told::Fact(Event::Namespaces(_)) = self.record.next().await else { panic!("no namespaces") };
        let Told::Fact(Event::Nodes(nodes)) = self.record.next().await else { panic!("no nodes") };
        let Told::Fact(Event::PriorityClasses(_)) = self.record.next().await else { panic!("no priority classes") };
        nodes.into_iter().map(|(name, _)| name).collect()
    }

    async fn synced(&mut self) {
        for what in FACTS {
            assert_eq!(self.record.next().await, Told::Synced(what));
        }
    }

    /// The problem that is told of all kinds of facts.
    async fn problem(&mut self) -> Option<String> {
        let Told::Source(_, problem) = self.record.next().await else { panic!("no problem") };
        for what in &FACTS[1..] {
            assert_eq!(self.record.next().await, Told::Source(*what, problem.clone()));
        }
        problem
    }
}

fn node(name: &str) -> String {
    format!("apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{gpu-mode: shared}}}}\n")
}

/// As a careful writer replaces a file.
fn replace(path: &Path, text: &str) {
    let next = path.with_extension("next");
    fs::write(&next, text).unwrap();
    fs::rename(&next, path).unwrap();
}

#[test]
fn facts_are_read_once_from_a_folder() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("nodes.yaml"), node("n1")).unwrap();
    fs::write(folder.path().join("more.json"), r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}"#)
        .unwrap();
    fs::write(folder.path().join(".nodes.yaml.swp"), "{").unwrap();
    fs::write(folder.path().join("README.md"), "{").unwrap();
    let manifests = read_facts(folder.path()).unwrap();
    let labels = Labels::from([("gpu-mode".into(), "shared".into())]);
    assert_eq!(manifests.facts, [object::Fact::Node("n1".into(), labels)]);
    assert_eq!(manifests.ignored.into_iter().collect::<Vec<_>>(), ["Secret"]);
}

#[test]
fn errors_name_file_document_and_line() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("nodes.yaml");
    let shown = path.display();
    for (text, told) in [
        (
            format!("{}---\nkind: Node\n", node("n1")),
            format!("{shown}: document 2, line 5: apiVersion or kind is missing"),
        ),
        ("kind: [Node\n".to_owned(), format!("{shown}: line ")),
        ("# nothing\n".to_owned(), format!("{shown}: no Namespace, Node or PriorityClass in it")),
    ] {
        fs::write(&path, text).unwrap();
        let error = read_facts(&path).unwrap_err().to_string();
        assert!(error.starts_with(&told), "{error}");
    }
    fs::write(&path, b"kind: \xff").unwrap();
    assert!(read_facts(&path).unwrap_err().to_string().contains("utf-8"));
    let error = read_facts(&folder.path().join("other.yaml")).unwrap_err().to_string();
    assert!(error.contains("other.yaml: cannot be read: No such file"), "{error}");
    fs::remove_file(&path).unwrap();
    let error = read_facts(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("no file in this folder ends in .yaml, .yml or .json"), "{error}");
}

#[tokio::test]
async fn edits_are_taken_up_and_mistakes_keep_what_was_good() {
    let mut scene = Scene::facts("nodes.yaml", |folder| fs::write(folder.join("nodes.yaml"), node("n1")).unwrap());
    assert_eq!(scene.nodes().await, ["n1"]);
    scene.synced().await;
    let file = scene.path().join("nodes.yaml");

    replace(&file, "kind: Node\n");
    assert!(scene.problem().await.unwrap().contains("document 1, line 1"));
    fs::remove_file(&file).unwrap();
    assert!(scene.problem().await.unwrap().contains("No such file"));
    replace(&file, "");
    assert!(scene.problem().await.unwrap().contains("no Namespace, Node or PriorityClass"));

    replace(&file, &node("n2"));
    assert_eq!(scene.nodes().await, ["n2"]);
    for what in FACTS {
        assert_eq!(scene.record.next().await, Told::Source(what, None));
        assert_eq!(scene.record.next().await, Told::Synced(what));
    }
}

#[tokio::test]
async fn a_mounted_folder_is_followed_through_its_symlinks() {
    let mut scene = Scene::facts("", |folder| {
        fs::create_dir(folder.join("..2031_02_03")).unwrap();
        fs::write(folder.join("..2031_02_03/nodes.yaml"), node("n1")).unwrap();
        symlink("..2031_02_03", folder.join("..data")).unwrap();
        symlink("..data/nodes.yaml", folder.join("nodes.yaml")).unwrap();
    });
    // Each file counts once, although it can be reached in three ways.
    assert_eq!(scene.nodes().await, ["n1"]);
    scene.synced().await;

    fs::create_dir(scene.path().join("..2031_02_04")).unwrap();
    fs::write(scene.path().join("..2031_02_04/nodes.yaml"), node("n2")).unwrap();
    symlink("..2031_02_04", scene.path().join("..data_tmp")).unwrap();
    fs::rename(scene.path().join("..data_tmp"), scene.path().join("..data")).unwrap();
    assert_eq!(scene.nodes().await, ["n2"]);
    scene.synced().await;
}

#[tokio::test]
async fn a_configuration_reloads_and_outlives_its_file() {
    let mut scene = Scene::policy(|folder| fs::write(folder.join("config.yaml"), GOOD).unwrap());
    let Told::Policy(first) = scene.record.next().await else { panic!("no policy") };
    assert_eq!(scene.record.next().await, Told::Synced(Watched::Configuration));
    let file = scene.path().join("config.yaml");
    assert_eq!(read_policy(&file).unwrap().digest, first);

    fs::remove_file(&file).unwrap();
    let Told::Configuration(Some(problem)) = scene.record.next().await else { panic!("no problem") };
    assert!(problem.contains("No such file") && problem.contains(&first), "{problem}");
    replace(&file, &GOOD.replace("warn", "dryrun"));
    let Told::Policy(second) = scene.record.next().await else { panic!("no policy") };
    assert!(second != first);
    assert_eq!(scene.record.next().await, Told::Configuration(None));
}

#[tokio::test]
async fn a_configuration_that_is_not_there_yet_is_waited_for() {
    let mut scene = Scene::policy(|_| {});
    let Told::Configuration(Some(problem)) = scene.record.next().await else { panic!("no problem") };
    assert!(problem.contains("there is no last good one"), "{problem}");
    assert!(scene.record.silent());
    replace(&scene.path().join("config.yaml"), GOOD);
    assert!(matches!(scene.record.next().await, Told::Policy(_)));
    assert_eq!(scene.record.next().await, Told::Configuration(None));
    assert_eq!(scene.record.next().await, Told::Synced(Watched::Configuration));
}

#[tokio::test]
async fn a_watch_stops_when_told() {
    let stop = CancellationToken::new();
    let (sink, mut record) = recorder();
    let missing = TempDir::new().unwrap().path().join("config.yaml");
    let task = tokio::spawn(watch_policy(missing, None, Duration::from_hours(1), Arc::clone(&sink), stop.clone()));
    assert!(matches!(record.next().await, Told::Configuration(Some(_))));
    stop.cancel();
    task.await.unwrap();
}
