//! Servers with policy sets.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::server::Server;

/// Three rules as teams write them; none refuses the review that is sent.
pub(crate) const RULES: &str = r#"
deny contains msg if {
    some container in input.request.object.spec.containers
    endswith(container.image, ":latest")
    msg := sprintf("container %s has no pinned image", [container.name])
}

deny contains "the label team is missing" if not input.request.object.metadata.labels.team

deny contains msg if {
    some volume in input.request.object.spec.volumes
    volume.hostPath.path
    msg := sprintf("volume %s is a path of the node", [volume.name])
}
"#;

/// slicegate with sets that match the review and sets that do not.
pub(crate) fn slicegate(folder: &Path, matching: usize, others: usize) -> Server {
    let policies = folder.join(format!("sets-{matching}-{others}"));
    std::fs::create_dir_all(&policies).unwrap();
    let set = |number: usize, matches: bool| {
        let annotations = if matches { "{}" } else { r#"{slicegate.io/match: "kinds: [ConfigMap]"}"# };
        let module = format!("package gpu.p{number}\n{RULES}").replace('\n', "\n    ");
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: p{number}\n  namespace: slicegate-system\n  labels: {{slicegate.io/policy: \"true\"}}\n  annotations: {annotations}\ndata:\n  p.rego: |\n    {module}\n---\n"
        )
    };
    let all: String = (0..matching + others).map(|number| set(number, number < matching)).collect();
    std::fs::write(policies.join("sets.yaml"), all).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_slicegate"));
    command.args(["serve", "--offline", "--tls-cert", "tls.pem", "--tls-key", "key.pem"]);
    command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--log-level", "info"]);
    if matching + others > 0 {
        command.arg("--policies").arg(&policies);
    }
    let start = Instant::now();
    let server = Server::start(command.current_dir(folder));
    let ready = || std::io::read_to_string(get(&server.admin, "/readyz")).is_ok_and(|text| text.contains("\r\n\r\nok"));
    while !ready() {
        assert!(start.elapsed() < Duration::from_mins(2), "never ready");
        std::thread::yield_now();
    }
    if matching + others > 0 {
        println!(
            "{} sets loaded after {:.2} s, {} kB resident in all",
            matching + others,
            start.elapsed().as_secs_f64(),
            server.whole()
        );
    }
    server
}

fn get(address: &str, path: &str) -> std::net::TcpStream {
    use std::io::Write as _;
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    stream
}
