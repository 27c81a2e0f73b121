//! A server in a process of its own, and what it takes.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server in a process of its own.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: String,
    pub(crate) admin: String,
    pub(crate) ready: Duration,
}

impl Server {
    pub(crate) fn start(command: &mut Command) -> Self {
        let start = Instant::now();
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("serving") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "the server ended");
        }
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        let address = line["listen"].as_str().unwrap().to_owned();
        let admin = line["admin"].as_str().unwrap_or_default().to_owned();
        let ready = start.elapsed();
        // The log is read as a container runtime does, and thrown away.
        std::thread::spawn(move || {
            let mut room = vec![0; 64 << 10];
            while output.read(&mut room).is_ok_and(|count| count > 0) {}
        });
        Self { child, address, admin, ready }
    }

    /// Processor time that the process and its children took so far, in seconds. The kernel counts in hundredths.
    pub(crate) fn cpu(&self) -> f64 {
        let ticks = |id: u32| {
            let fields = stat(id)?;
            // utime, stime, and those of children that have ended.
            Some(fields[11..15].iter().map(|field| field.parse::<f64>().unwrap()).sum::<f64>())
        };
        self.processes().into_iter().filter_map(ticks).sum::<f64>() / 100.0
    }

    /// Resident memory of the process and its children, in kB.
    pub(crate) fn whole(&self) -> u64 {
        let resident = |id| field(id, "VmRSS").and_then(|size| size.parse::<u64>().ok());
        self.processes().into_iter().filter_map(resident).sum()
    }

    /// The process and its children.
    fn processes(&self) -> Vec<u32> {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let parent = self.child.id().to_string();
        let of_mine = |id: &u32| *id == self.child.id() || stat(*id).is_some_and(|fields| fields[1] == parent);
        ids.filter(of_mine).collect()
    }

    pub(crate) fn resident(&self) -> String {
        self.memory("VmRSS")
    }

    pub(crate) fn memory(&self, name: &str) -> String {
        field(self.child.id(), name).unwrap()
    }
}

/// The fields of a process's `stat` behind its name; nothing where it is gone.
pub(crate) fn stat(id: u32) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    Some(stat.rsplit(')').next()?.split_whitespace().map(str::to_owned).collect())
}

fn field(id: u32, name: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1).map(str::to_owned)
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
