//! How much memory a server and its workers hold.
//!
//! Invariant: what is measured is the most at any moment, the processes that ended meanwhile included.

use std::fs;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// How often it is looked at.
const INTERVAL: Duration = Duration::from_millis(5);

/// Does something, and says by how many MiB this process and the workers whose last argument this is grew at most.
pub(crate) fn growth<T>(workers: &str, work: impl FnOnce() -> T) -> (T, u64) {
    let before = held(workers);
    let (done, ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let watch = scope.spawn(move || {
            let mut most = before;
            while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                most = most.max(held(workers));
            }
            most
        });
        let result = work();
        drop(done);
        let most = watch.join().expect("the watch does not panic");
        (result, most.saturating_sub(before) >> 10)
    })
}

/// In KiB.
fn held(workers: &str) -> u64 {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let of_workers = processes.filter(|process| {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).filter(|word| !word.is_empty()).collect();
        words.contains(&&b"rego-worker"[..]) && words.last() == Some(&workers.as_bytes())
    });
    let resident = |folder: &std::path::Path| {
        let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or_default()
    };
    resident("/proc/self".as_ref()) + of_workers.map(|process| resident(&process.path())).sum::<u64>()
}
