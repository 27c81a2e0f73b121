//! A client that writes its own bytes, for servers in other processes.

use std::io::ErrorKind;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::certificates::Certificates;

/// A connection to this address after its TLS handshake.
pub async fn tls(certificates: &Certificates, address: &str) -> TlsStream<TcpStream> {
    tls_as(certificates, None, address).await.unwrap()
}

/// The same, with a certificate of the client's own, and perhaps refused.
pub async fn tls_as(
    certificates: &Certificates,
    identity: Option<&Certificates>,
    address: &str,
) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    let connector = TlsConnector::from(Arc::new(certificates.client_as(identity, &[])));
    connector.connect(ServerName::try_from("localhost").unwrap(), stream).await
}

/// The head of a review of this length.
pub fn head(path: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n")
}

/// Sends one review, after which the connection ends, and gives back all that comes.
pub async fn try_once(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    path: &str,
    body: &str,
) -> std::io::Result<String> {
    let head = head(path, body.len()).replace("host: x", "host: x\r\nconnection: close");
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer).await {
        // A server that ends the connection under TLS' farewell has still answered.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof && !answer.is_empty() => {}
        result => drop(result?),
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The same, where nothing may go wrong.
pub async fn once(stream: impl AsyncRead + AsyncWrite + Unpin, path: &str, body: &str) -> String {
    try_once(stream, path, body).await.unwrap()
}
