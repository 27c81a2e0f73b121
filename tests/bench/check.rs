//! What `check` takes for many manifests: 10,000 Pods in one file of 3.8 MB, beside a plain parse of the same text.
//!
//! Run with `cargo bench --bench check --profile dist -- [Pods]`. Prints the median of rounds that take turns, for the whole
//! program from its start to its end, and the ratio to one thread of serde-saphyr that reads the text into JSON values.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_precision_loss,
    clippy::print_stdout,
    reason = "a measurement that goes wrong stops, and what it counts is small"
)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::process::{Command, Stdio};
use std::time::Instant;

const ROUNDS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let pods: usize = arguments.first().map_or(10_000, |count| count.parse().expect("a count of Pods"));
    let text = manifests(pods);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pods.yaml");
    std::fs::write(&path, &text).unwrap();
    println!("{pods} Pods, {:.1} MB", text.len() as f64 / 1e6);
    for flags in [&["--quiet"][..], &[], &["--quiet", "--format", "json"]] {
        let (mut checked, mut parsed) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            checked.push(seconds(|| {
                let mut command = Command::new(env!("CARGO_BIN_EXE_slicegate"));
                command.arg("check").args(flags).arg(&path).stdout(Stdio::null());
                assert!(command.status().unwrap().success());
            }));
            parsed.push(seconds(|| {
                let values = serde_saphyr::from_multiple::<serde_json::Value>(&text).unwrap();
                assert_eq!(black_box(values).len(), pods);
            }));
        }
        let (checked, parsed) = (median(checked), median(parsed));
        println!(
            "check {}: {checked:.3} s, {:.0} Pods/s; serde-saphyr alone {parsed:.3} s; ratio {:.2}",
            flags.join(" "),
            pods as f64 / checked,
            checked / parsed
        );
    }
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

fn median(mut rounds: Vec<f64>) -> f64 {
    rounds.sort_by(f64::total_cmp);
    rounds.get(rounds.len() / 2).copied().unwrap_or_default()
}

/// Pods as teams write them, all let through.
fn manifests(pods: usize) -> String {
    (0..pods).fold(String::new(), |mut text, place| {
        let shares = if place % 3 == 0 { "        nvidia.com/gpu.shared: \"1\"\n" } else { "        cpu: \"2\"\n" };
        let _ = write!(
            text,
            "---
apiVersion: v1
kind: Pod
metadata:
  name: trainer-{place}
  namespace: team-{}
  labels:
    app.kubernetes.io/name: trainer
    slicegate.io/checkpoint: \"true\"
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: registry.example.test/team/trainer:1.4.2
    args: [--epochs, \"10\", --resume]
    resources:
      limits:
        memory: 8Gi
{shares}",
            place % 40
        );
        text
    })
}
