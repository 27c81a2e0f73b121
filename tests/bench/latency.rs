//! How long answers take at a steady rate: the bare handler, the whole server, the whole server with ten policy sets.
//!
//! Run with `cargo bench --bench latency --profile dist -- [seconds] [rate]`: seconds of each round, and requests a second. The
//! load is open: a request is begun when its time has come, whether others are answered or not, and waits for a free
//! connection at its own cost. Prints percentiles and, by rounds that take turns, their ratio to the bare handler's.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::print_stdout,
    reason = "a measurement that goes wrong stops, and what it counts is small"
)]

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

#[path = "../support"]
#[allow(unreachable_pub, dead_code, reason = "each binary uses a part of the support")]
mod support {
    pub mod certificates;
    pub mod client;
}
mod bare;
#[allow(unreachable_pub, dead_code, reason = "each bench uses a part of it")]
mod bodies;
#[allow(unreachable_pub, dead_code, reason = "each bench uses a part of it")]
mod load;
#[allow(unreachable_pub, dead_code, reason = "each bench uses a part of it")]
mod server;
#[allow(unreachable_pub, dead_code, reason = "each bench uses a part of it")]
mod sets;

use server::Server;
use support::certificates::Certificates;
use support::client;

const ROUNDS: usize = 5;
const CONNECTIONS: usize = 32;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if arguments.first().is_some_and(|argument| argument == "bare") {
        return bare::serve();
    }
    let number = |index: usize, default: u32| {
        arguments.get(index).map_or(default, |text| text.parse().expect("seconds, and a rate"))
    };
    let (seconds, rate) = (number(0, 5), number(1, 2_000));
    let folder = tempfile::tempdir().unwrap();
    let certificates = Certificates::make();
    std::fs::write(folder.path().join("tls.pem"), &certificates.certificate).unwrap();
    std::fs::write(folder.path().join("key.pem"), &certificates.key).unwrap();
    let mut bare = Command::new(std::env::current_exe().unwrap());
    let bare = Server::start(bare.arg("bare").current_dir(folder.path()));
    let servers = [
        ("the bare handler", bare),
        ("the whole server", sets::slicegate(folder.path(), 0, 0)),
        ("with ten policy sets", sets::slicegate(folder.path(), 10, 0)),
    ];

    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut rounds: Vec<[Vec<Duration>; 3]> = Vec::new();
    for round in 0..=ROUNDS {
        let latencies = servers
            .each_ref()
            .map(|(_, server)| runtime.block_on(steadily(&certificates, &server.address, rate, seconds)));
        // The first round warms up.
        if round > 0 {
            rounds.push(latencies);
        }
    }
    println!("{rate} requests a second for {seconds} s, {ROUNDS} rounds, {CONNECTIONS} connections of HTTP/1.1");
    for (index, (name, _)) in servers.iter().enumerate() {
        let mut all: Vec<_> = rounds.iter().flat_map(|round| round[index].iter().copied()).collect();
        all.sort_unstable();
        let [median, most, rarest] = [0.5, 0.99, 0.999].map(|part| percentile(&all, part).as_secs_f64() * 1e6);
        let mut ratios: Vec<f64> = rounds.iter().map(|round| p99(&round[index]) / p99(&round[0])).collect();
        ratios.sort_by(f64::total_cmp);
        println!(
            "{name}: p50 {median:.0} us, p99 {most:.0} us, p99.9 {rarest:.0} us; p99 against the bare handler's {:.2} ({:.2} to {:.2})",
            ratios[ROUNDS / 2],
            ratios[0],
            ratios[ROUNDS - 1]
        );
    }
}

fn p99(latencies: &[Duration]) -> f64 {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    percentile(&sorted, 0.99).as_secs_f64()
}

fn percentile(sorted: &[Duration], part: f64) -> Duration {
    sorted[((sorted.len() - 1) as f64 * part) as usize]
}

/// Sends at this rate for so long, and says how long each answer took from the moment when its request was due.
async fn steadily(certificates: &Certificates, address: &str, rate: u32, seconds: u32) -> Vec<Duration> {
    let body = bodies::pod();
    let head = client::head("/validate?timeout=10s", body.len());
    let request = Arc::new([head.as_bytes(), &body].concat());
    let (send, due) = mpsc::unbounded_channel::<Instant>();
    let due = Arc::new(Mutex::new(due));
    let mut senders = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let mut stream = client::tls(certificates, address).await;
        stream.get_ref().0.set_nodelay(true).unwrap();
        let (request, due) = (Arc::clone(&request), Arc::clone(&due));
        senders.spawn(async move {
            let (mut took, mut room) = (Vec::new(), vec![0; 16 << 10]);
            loop {
                let next = due.lock().await.recv().await;
                let Some(since) = next else { return took };
                load::exchange(&mut stream, &request, &mut room).await;
                took.push(since.elapsed());
            }
        });
    }
    // The timer ticks each millisecond, and what has come due since then is due now: its jitter is not the servers'.
    let (start, total) = (Instant::now(), u64::from(rate) * u64::from(seconds));
    let mut tick = tokio::time::interval(Duration::from_millis(1));
    let mut begun = 0;
    while begun < total {
        tick.tick().await;
        let now = Instant::now();
        let should = (start.elapsed().as_secs_f64() * f64::from(rate)) as u64;
        for _ in begun..should.min(total) {
            send.send(now).unwrap();
        }
        begun = should.clamp(begun, total);
    }
    drop(send);
    senders.join_all().await.into_iter().flatten().collect()
}
