//! A client that speaks HTTP/1.1 by hand, so that broken, slow and plain requests can be sent as they are.
//!
//! Invariant: every exchange has a deadline; a server that hangs is an error, never a hanging test.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;

use crate::scene::Loaded;

/// Longer than any answer takes, shorter than anybody's patience.
const PATIENCE: Duration = Duration::from_mins(1);

/// Whom to speak to.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) tls: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
    /// What became of the sets that were loaded last.
    pub(crate) loaded: Option<Arc<Loaded>>,
}

/// One request, as it is written.
#[derive(Debug, Clone)]
pub(crate) struct Send {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub(crate) enum Reply {
    /// An HTTP answer.
    Answer { status: u16, body: Vec<u8> },
    /// The connection ended without one.
    Nothing(String),
}

impl Send {
    /// A review for one of the endpoints.
    pub(crate) fn review(path: &str, body: Vec<u8>) -> Self {
        let headers = BTreeMap::from([("Content-Type".to_owned(), "application/json".to_owned())]);
        Self { method: "POST".into(), path: path.into(), headers, body }
    }

    fn head(&self) -> Vec<u8> {
        let headers: String = self.headers.iter().flat_map(|(key, value)| [key, ": ", value, "\r\n"]).collect();
        let first = format!("{} {} HTTP/1.1\r\nHost: slicegate\r\nConnection: close\r\n", self.method, self.path);
        format!("{first}{headers}Content-Length: {}\r\n\r\n", self.body.len()).into_bytes()
    }
}

impl Target {
    /// Sends a request over TLS and reads the answer.
    pub(crate) fn post(&self, send: &Send) -> Reply {
        match self.connect() {
            Ok(mut stream) => exchange(&mut stream, send),
            Err(error) => Reply::Nothing(error.to_string()),
        }
    }

    /// The same without TLS, on the same port.
    pub(crate) fn post_plain(&self, send: &Send) -> Reply {
        match self.connect_plain() {
            Ok(mut stream) => exchange(&mut stream, send),
            Err(error) => Reply::Nothing(error.to_string()),
        }
    }

    /// Sends the head at once and the body so many bytes a second, until the server ends the connection. Says after how
    /// long that was, and whether it answered before; `meanwhile` runs once the body has begun.
    pub(crate) fn drip(
        &self,
        send: &Send,
        bytes: u64,
        limit: Duration,
        meanwhile: impl FnOnce(),
    ) -> Result<Duration, String> {
        let mut stream = self.connect().map_err(|error| error.to_string())?;
        let begin = Instant::now();
        stream.write_all(&send.head()).map_err(|error| error.to_string())?;
        let mut pieces = send.body.chunks(usize::try_from(bytes).unwrap_or(1).max(1));
        stream.write_all(pieces.next().unwrap_or_default()).map_err(|error| error.to_string())?;
        meanwhile();
        // Waiting for the server's end of the connection is what paces the bytes: a second without it, one more piece.
        stream.sock.set_read_timeout(Some(Duration::from_secs(1))).map_err(|error| error.to_string())?;
        while begin.elapsed() < limit {
            match stream.read(&mut [0; 4096]) {
                Ok(0) => return Ok(begin.elapsed()),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    let piece =
                        pieces.next().ok_or("the whole body was sent before the server closed the connection")?;
                    if stream.write_all(piece).and_then(|()| stream.flush()).is_err() {
                        return Ok(begin.elapsed());
                    }
                }
                Err(_) => return Ok(begin.elapsed()),
            }
        }
        Err(format!("the connection is still open after {limit:?}"))
    }

    fn connect_plain(&self) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    fn connect(&self) -> std::io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let session = ClientConnection::new(Arc::clone(&self.tls), self.name.clone()).map_err(std::io::Error::other)?;
        Ok(StreamOwned::new(session, self.connect_plain()?))
    }
}

fn exchange(stream: &mut (impl Read + Write), send: &Send) -> Reply {
    // A server that has seen enough may answer and close before it has read everything; then the answer counts.
    let written =
        stream.write_all(&send.head()).and_then(|()| stream.write_all(&send.body)).and_then(|()| stream.flush());
    let mut answer = Vec::new();
    let read = read_answer(stream, &mut answer);
    match (parse(&answer), written.and(read)) {
        (Some((status, body)), _) => Reply::Answer { status, body },
        (None, Err(error)) => Reply::Nothing(error.to_string()),
        (None, Ok(())) => Reply::Nothing(format!("{} bytes that are no HTTP answer", answer.len())),
    }
}

/// Reads until the answer is whole, or the server closes.
fn read_answer(stream: &mut impl Read, answer: &mut Vec<u8>) -> std::io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let mut piece = [0; 16 * 1024];
    while parse(answer).is_none() {
        if Instant::now() > deadline {
            return Err(ErrorKind::TimedOut.into());
        }
        match stream.read(&mut piece)? {
            0 => return Ok(()),
            read => answer.extend_from_slice(&piece[..read]),
        }
    }
    Ok(())
}

/// The status and the body of a whole answer that gives its length.
fn parse(answer: &[u8]) -> Option<(u16, Vec<u8>)> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let length = head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let body = &answer[end + 4..];
    (body.len() >= length.unwrap_or(0)).then(|| (status, body.to_vec()))
}
