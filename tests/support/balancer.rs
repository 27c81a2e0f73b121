//! A balancer as a Service is one: each connection goes to one of the replicas that are ready, in turn, and stays there.
//!
//! Readiness is asked for as a kubelet does, only faster. A replica that does not take a connection is passed over.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::Result;

use crate::cluster::{Slicegate, get, pause};

/// A replica, and whether it said that it is ready when it was asked last.
#[derive(Clone)]
struct Backend {
    port: u16,
    admin: u16,
    ready: Arc<AtomicBool>,
}

/// The balancer. It takes no connection more when it is dropped.
pub(crate) struct Balancer {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    backends: Mutex<Vec<Backend>>,
    turn: AtomicUsize,
    over: AtomicBool,
}

impl Balancer {
    pub(crate) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let balancer = Self { port: listener.local_addr()?.port(), shared: Arc::default() };
        let shared = Arc::clone(&balancer.shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if shared.over.load(Ordering::Relaxed) {
                    break;
                }
                shared.pass_on(&stream);
            }
        });
        let shared = Arc::clone(&balancer.shared);
        std::thread::spawn(move || {
            while !shared.over.load(Ordering::Relaxed) {
                shared.probe();
                pause();
            }
        });
        Ok(balancer)
    }

    /// Takes in a replica that is ready.
    pub(crate) fn add(&self, replica: &Slicegate) {
        let ready = Arc::new(AtomicBool::new(true));
        let backend = Backend { port: replica.port(), admin: replica.admin_port(), ready };
        self.shared.backends.lock().unwrap().push(backend);
    }

    /// Where connections are taken.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        // The loop looks at that when a connection comes.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn backends(&self) -> Vec<Backend> {
        self.backends.lock().unwrap().clone()
    }

    fn probe(&self) {
        for backend in self.backends() {
            let ready = get(backend.admin, "/readyz").is_ok_and(|(status, _)| status == 200);
            backend.ready.store(ready, Ordering::Relaxed);
        }
    }

    /// Connects a client to the next replica that takes it; drops it where there is none.
    fn pass_on(&self, client: &TcpStream) {
        let backends = self.backends();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let in_turn = backends.iter().cycle().skip(turn % backends.len().max(1)).take(backends.len());
        let mut ready = in_turn.filter(|backend| backend.ready.load(Ordering::Relaxed));
        let Some(server) = ready.find_map(|backend| TcpStream::connect(("127.0.0.1", backend.port)).ok()) else {
            return;
        };
        for (from, to) in [(client, &server), (&server, client)] {
            let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            std::thread::spawn(move || copy(from, to));
        }
    }
}

/// Copies until one side ends or fails, and tells the other.
fn copy(mut from: TcpStream, mut to: TcpStream) {
    let mut room = vec![0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut room) {
        if to.write_all(&room[..count]).is_err() {
            break;
        }
    }
    // What is closed already needs no word.
    let _ = to.shutdown(Shutdown::Write);
}
