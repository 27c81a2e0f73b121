//! A client that writes its own bytes, for servers in other processes.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::certificates::Certificates;

/// A connection to this address after its TLS handshake.
pub async fn tls(certificates: &Certificates, address: &str) -> TlsStream<TcpStream> {
    let stream = TcpStream::connect(address).await.unwrap();
    let connector = TlsConnector::from(Arc::new(certificates.client(&[])));
    connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap()
}

/// The head of a review of this length.
pub fn head(path: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n")
}
