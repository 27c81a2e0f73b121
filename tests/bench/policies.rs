//! What policy sets cost: against the built-in rules alone, and against the real OPA server with the same rules.
//!
//! Run with `cargo bench --bench policies --profile dist -- [requests]`; OPA is built when it is not there. Prints reviews a
//! second and processor time for each review, of all processes of a server, in rounds that take turns.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_precision_loss,
    clippy::print_stdout,
    reason = "a measurement that goes wrong stops, and what it counts is small"
)]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[path = "../support"]
#[allow(unreachable_pub, dead_code, reason = "each binary uses a part of the support")]
mod support {
    pub mod certificates;
    pub mod client;
}
#[allow(unreachable_pub, dead_code, reason = "each bench uses a part of it")]
mod bodies;
#[allow(unreachable_pub, dead_code, reason = "each bench uses a part of it")]
mod load;
#[allow(unreachable_pub, dead_code, reason = "each bench uses a part of it")]
mod server;
mod sets;

use load::Load;
use sets::{RULES, slicegate};
use support::certificates::Certificates;

const ROUNDS: usize = 3;
const LOAD: Load = Load::Http1 { connections: 16 };

/// OPA's answer to an API server, from all packages below `gpu`.
const MAIN: &str = r#"package system

main := {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}

denials contains msg if some msg in data.gpu[_].deny

response := {"uid": input.request.uid, "allowed": true} if count(denials) == 0

response := {"uid": input.request.uid, "allowed": false, "status": {"message": concat("; ", denials)}} if count(denials) > 0
"#;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let requests: usize = arguments.first().map_or(60_000, |count| count.parse().expect("a count of requests"));
    let folder = tempfile::tempdir().unwrap();
    let certificates = Certificates::make();
    std::fs::write(folder.path().join("tls.pem"), &certificates.certificate).unwrap();
    std::fs::write(folder.path().join("key.pem"), &certificates.key).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let body = bodies::pod();
    let measure = |address: &str, path: &str, cpu: &dyn Fn() -> f64| {
        let (before, start) = (cpu(), Instant::now());
        let sent = runtime.block_on(LOAD.send_to(path, &certificates, address, &body, requests / ROUNDS));
        (sent as f64 / start.elapsed().as_secs_f64(), (cpu() - before) / sent as f64 * 1e6)
    };
    let median = |mut rounds: Vec<(f64, f64)>| {
        rounds.sort_by(|left, right| left.0.total_cmp(&right.0));
        rounds[rounds.len() / 2]
    };

    // Only loaded: as many as a large installation has.
    drop(slicegate(folder.path(), 500, 0));
    let alone = slicegate(folder.path(), 0, 0);
    let mut of_sets = Vec::new();
    for (matching, others) in [(1, 0), (10, 0), (100, 0), (0, 1000)] {
        let server = slicegate(folder.path(), matching, others);
        let (mut base, mut with) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            base.push(measure(&alone.address, "/validate?timeout=10s", &|| alone.cpu()));
            with.push(measure(&server.address, "/validate?timeout=10s", &|| server.cpu()));
        }
        let (base, with) = (median(base), median(with));
        println!(
            "{matching} sets that match, {others} that do not: {:.0}/s, {:.1} us of CPU each; built-in rules alone {:.0}/s, {:.1} us; ratio {:.2}; {} kB resident in all",
            with.0,
            with.1,
            base.0,
            base.1,
            with.0 / base.0,
            server.whole()
        );
        if others == 0 {
            of_sets.push((matching, server));
        }
    }
    for (count, server) in of_sets.into_iter().take(2) {
        let opa = Opa::start(folder.path(), count);
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            theirs.push(measure(&opa.address, "/", &|| opa.cpu()));
            ours.push(measure(&server.address, "/validate?timeout=10s", &|| server.cpu()));
        }
        let (theirs, ours) = (median(theirs), median(ours));
        println!(
            "{count} sets: {:.0} reviews a CPU second here, {:.0} with OPA; ratio {:.2}",
            1e6 / ours.1,
            1e6 / theirs.1,
            theirs.1 / ours.1
        );
    }
}

/// The real OPA, as a server over TLS.
struct Opa {
    child: Child,
    address: String,
}

impl Opa {
    fn start(folder: &Path, sets: usize) -> Self {
        let built = Command::new("tests/e2e/opa/build.sh").output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let program = String::from_utf8(built.stdout).unwrap().trim().lines().last().unwrap().to_owned();
        let rules = folder.join(format!("opa-{sets}"));
        std::fs::create_dir_all(&rules).unwrap();
        std::fs::write(rules.join("main.rego"), MAIN).unwrap();
        for number in 0..sets {
            std::fs::write(rules.join(format!("p{number}.rego")), format!("package gpu.p{number}\n{RULES}")).unwrap();
        }
        // OPA does not say which port it took, so one is found for it.
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let mut command = Command::new(program);
        command.args([
            "run",
            "--server",
            "--log-level",
            "error",
            "--tls-cert-file",
            "tls.pem",
            "--tls-private-key-file",
            "key.pem",
        ]);
        command.arg("--addr").arg(&address).arg(&rules).current_dir(folder);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let start = Instant::now();
        while std::net::TcpStream::connect(&address).is_err() {
            assert!(start.elapsed() < Duration::from_mins(1), "OPA never listens");
            std::thread::yield_now();
        }
        Self { child, address }
    }

    fn cpu(&self) -> f64 {
        let fields = server::stat(self.child.id()).unwrap();
        fields[11..13].iter().map(|field| field.parse::<f64>().unwrap()).sum::<f64>() / 100.0
    }
}

impl Drop for Opa {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
