//! The whole server against a bare handler on the same TLS stack, which reads the body, parses it with `serde_json::Value`
//! and answers a constant. One load generator for both, on the same cores, in rounds that take turns.
//!
//! Run with `cargo bench --bench wire --profile dist -- [requests]`; `requests` is how many each round sends at least, and
//! the memory is read after all rounds. Prints the ratio of reviews a second, and of processor time for each review.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_precision_loss,
    clippy::print_stdout,
    reason = "a measurement that goes wrong stops, and what it counts is small"
)]

use std::process::Command;
use std::time::Instant;

#[path = "../support"]
#[allow(unreachable_pub, dead_code, reason = "each binary uses a part of the support")]
mod support {
    pub mod certificates;
    pub mod client;
}
mod bare;
#[allow(unreachable_pub, dead_code, reason = "each bench uses a part of it")]
mod bodies;
mod load;
#[allow(unreachable_pub, dead_code, reason = "each bench uses a part of it")]
mod server;

use load::Load;
use server::Server;
use support::certificates::Certificates;

const ROUNDS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if arguments.first().is_some_and(|argument| argument == "bare") {
        return bare::serve();
    }
    let requests: usize = arguments.first().map_or(200_000, |count| count.parse().expect("a count of requests"));
    let folder = tempfile::tempdir().unwrap();
    let certificates = Certificates::make();
    std::fs::write(folder.path().join("tls.pem"), &certificates.certificate).unwrap();
    std::fs::write(folder.path().join("key.pem"), &certificates.key).unwrap();

    let mut bare = Command::new(std::env::current_exe().unwrap());
    bare.arg("bare");
    let mut whole = Command::new(env!("CARGO_BIN_EXE_slicegate"));
    whole.args(["serve", "--offline", "--tls-cert", "tls.pem", "--tls-key", "key.pem"]);
    whole.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    let bare = Server::start(bare.current_dir(folder.path()));
    let whole = Server::start(whole.current_dir(folder.path()));
    println!("ready after {:.1} ms; resident {} kB at first", whole.ready.as_secs_f64() * 1e3, whole.resident());

    let body = bodies::pod();
    println!("review of {} bytes, {ROUNDS} rounds of {} requests each", body.len(), requests / ROUNDS / 2);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for load in [Load::Http1 { connections: 16 }, Load::Http2 { streams: 64 }] {
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let [bare, whole] = [&bare, &whole].map(|server| {
                let (cpu, start) = (server.cpu(), Instant::now());
                let sent = runtime.block_on(load.send(&certificates, &server.address, &body, requests / ROUNDS / 2));
                (sent as f64 / start.elapsed().as_secs_f64(), (server.cpu() - cpu) / sent as f64 * 1e6)
            });
            rounds.push((whole.0 / bare.0, bare, whole));
        }
        rounds.sort_by(|left, right| left.0.total_cmp(&right.0));
        let (ratio, bare, whole) = rounds[ROUNDS / 2];
        let (least, most) = (rounds[0].0, rounds[ROUNDS - 1].0);
        println!(
            "{load}: bare {:.0}/s, {:.1} us of CPU each; whole {:.0}/s, {:.1} us of CPU each; ratio {ratio:.2} ({least:.2} to {most:.2})",
            bare.0, bare.1, whole.0, whole.1
        );
    }
    println!("resident {} kB at the end, {} kB at most", whole.resident(), whole.memory("VmHWM"));
}
