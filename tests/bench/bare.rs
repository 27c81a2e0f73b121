//! The bare handler: what any server on this TLS stack has to pay.

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::routing::post;
use http_body_util::BodyExt as _;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use slicegate::server::tls::{Certificates, Pair, server_config};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tower_service::Service as _;

const ANSWER: &str = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","allowed":true}}"#;

/// Serves the pair in the present folder until it is killed.
pub(crate) fn serve() {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let pair = Pair::from_files(Path::new("tls.pem"), Path::new("key.pem")).unwrap();
        let tls = TlsAcceptor::from(Arc::new(server_config(Arc::new(Certificates::of(pair)), None).unwrap()));
        let router = Router::new().route("/validate", post(answer));
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", serde_json::json!({"message": "serving", "listen": socket.local_addr().unwrap()}));
        loop {
            let (stream, _) = socket.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let (tls, router) = (tls.clone(), router.clone());
            tokio::spawn(async move {
                let Ok(stream) = tls.accept(stream).await else { return };
                let service = service_fn(move |request| router.clone().call(request));
                let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
}

async fn answer(request: Request) -> Body {
    let bytes = request.into_body().collect().await.unwrap().to_bytes();
    let review: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert!(review.is_object());
    Body::from(ANSWER)
}
