//! The pure path of one review, from its bytes to the bytes of its answer, as a ratio to what `serde_json::Value` takes to
//! parse the same bytes. Run with `cargo bench --bench review --profile dist`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_precision_loss,
    clippy::print_stdout,
    reason = "a measurement that goes wrong stops, and what it counts is small"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use slicegate::config::Config;
use slicegate::facts::Facts;
use slicegate::policy::{Phase, Policy, decide};
use slicegate::review::decode;
use slicegate::review::response::encode;

#[allow(unreachable_pub, dead_code, reason = "each bench uses a part of it")]
mod bodies;

/// Long enough that a round is not a matter of the clock.
const ROUND: Duration = Duration::from_millis(100);
const ROUNDS: usize = 15;

fn main() {
    let policy = Policy { config: Config::default(), digest: "default".to_owned() };
    let facts = Facts::default();
    println!(
        "{:<22} {:>8} {:>10} {:>10} {:>10} {:>7} {:>7}",
        "review", "bytes", "parse us", "decode us", "whole us", "phase", "ratio"
    );
    let bodies =
        [("Pod", bodies::pod()), ("Deployment", bodies::deployment()), ("Pod of 200 containers", bodies::pod_of(200))];
    for (name, body) in &bodies {
        for phase in [Phase::Validate, Phase::Mutate] {
            let whole = || {
                let request = decode(black_box(body)).unwrap();
                let decision = decide(phase, &request, &policy, &facts, &[], Timestamp::UNIX_EPOCH);
                encode(phase, &request, &decision, &policy.digest).body.len()
            };
            let parse = || serde_json::from_slice::<serde_json::Value>(black_box(body)).unwrap().is_object().into();
            let decoding = || decode(black_box(body)).unwrap().uid.len();
            let [parse, decoding, whole] = medians([&parse, &decoding, &whole]);
            println!(
                "{name:<22} {:>8} {:>10.2} {:>10.2} {:>10.2} {:>7} {:>7.2}",
                body.len(),
                parse / 1e3,
                decoding / 1e3,
                whole / 1e3,
                if phase == Phase::Validate { "validate" } else { "mutate" },
                whole / parse
            );
        }
    }
}

/// The median time of each, in nanoseconds, from rounds that take turns.
fn medians<const N: usize>(works: [&dyn Fn() -> usize; N]) -> [f64; N] {
    let mut times = works.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (work, times) in works.iter().zip(&mut times) {
            let (start, mut count) = (Instant::now(), 0_u32);
            while start.elapsed() < ROUND {
                for _ in 0..20 {
                    black_box(work());
                }
                count += 20;
            }
            times.push(start.elapsed().as_nanos() as f64 / f64::from(count));
        }
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    })
}
