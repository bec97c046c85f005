//! TLS with a CA of one's own, certificates that are refused, and HTTP/2 with and without TLS.

mod ground;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use ground::{header, run, send, stage, until_status};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A CA of one's own, and what it signed.
struct Authority {
    folder: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { folder, issuer }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A certificate for this name, and its key; written down for a client, too.
    fn sign(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.file("client.pem"), certificate.pem()).unwrap();
        std::fs::write(self.file("client.key"), key.serialize_pem()).unwrap();
        (certificate, key)
    }

    fn server(&self, protocols: &[&[u8]], asks: bool) -> TlsAcceptor {
        let (certificate, key) = self.sign("localhost");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        let builder =
            if asks { builder.with_client_cert_verifier(verifier) } else { builder.with_no_client_auth() };
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let mut config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// An endpoint that speaks HTTP/1.1 or HTTP/2, counts what came by which, and says done to everything.
struct Server {
    port: u16,
    one: Arc<AtomicUsize>,
    two: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    async fn new(tls: Option<TlsAcceptor>, speaks_two: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let this = Self { port, one: Arc::default(), two: Arc::default(), connections: Arc::default() };
        let (one, two, connections) = (this.one.clone(), this.two.clone(), this.connections.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                let (one, two, tls) = (one.clone(), two.clone(), tls.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let count = if request.version() == Version::HTTP_2 { two.clone() } else { one.clone() };
                    async move {
                        request.into_body().collect().await?;
                        count.fetch_add(1, Ordering::SeqCst);
                        Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::from_static(b"thanks"))))
                    }
                });
                tokio::spawn(async move {
                    let Some(tls) = tls else {
                        let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                            .serve_connection(TokioIo::new(stream), service)
                            .await;
                        return;
                    };
                    let Ok(stream) = tls.accept(stream).await else { return };
                    let stream = TokioIo::new(stream);
                    if speaks_two {
                        let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                        let _ = builder.serve_connection(stream, service).await;
                    } else {
                        let _ = hyper::server::conn::http1::Builder::new()
                            .serve_connection(stream, service)
                            .await;
                    }
                });
            }
        });
        this
    }

    fn counts(&self) -> (usize, usize) {
        (self.one.load(Ordering::SeqCst), self.two.load(Ordering::SeqCst))
    }
}

async fn handles_ten(keys: &str) {
    let stage = stage().await;
    let running = run(&stage, keys).await;
    send(&stage, &["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]).await;
    until_status(&running, "handled", |status| status.counts.handled == 10).await;
    running.stop().await.unwrap();
}

fn keys(port: u16, ca: &Path, more: &str) -> String {
    format!("handler.http = {{ url = \"https://localhost:{port}/a\", ca = \"{}\"{more} }}", ca.display())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ca_of_ones_own_is_trusted_and_both_versions_are_spoken() {
    let authority = Authority::new();
    let ca = authority.file("ca.pem");
    let old = Server::new(Some(authority.server(&[b"http/1.1"], false)), false).await;
    handles_ten(&keys(old.port, &ca, "")).await;
    assert_eq!(old.counts(), (10, 0));
    let new = Server::new(Some(authority.server(&[b"h2", b"http/1.1"], false)), true).await;
    handles_ten(&keys(new.port, &ca, "")).await;
    handles_ten(&keys(new.port, &ca, ", version = \"2\"")).await;
    assert_eq!(new.counts(), (0, 20));
    assert!(new.connections.load(Ordering::SeqCst) < 20);
    let one = Server::new(Some(authority.server(&[b"h2", b"http/1.1"], false)), false).await;
    handles_ten(&keys(one.port, &ca, ", version = \"1.1\"")).await;
    assert_eq!(one.counts(), (10, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn http_2_is_spoken_without_tls_where_asked_for() {
    let server = Server::new(None, true).await;
    handles_ten(&format!(
        "handler.http = {{ url = \"http://127.0.0.1:{}/\", version = \"2\" }}",
        server.port
    ))
    .await;
    assert_eq!(server.counts(), (0, 10));
}

/// Passes bytes to a server and back, except on its first connection once `cut` is set: nobody hears of that.
async fn wire(server: u16, cut: Arc<AtomicBool>) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = connections.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let is_first = count.fetch_add(1, Ordering::SeqCst) == 0;
            let cut = cut.clone();
            let (mut from, mut to) = client.into_split();
            let (mut back, mut on) = TcpStream::connect(("127.0.0.1", server)).await.unwrap().into_split();
            tokio::spawn(async move { tokio::io::copy(&mut back, &mut to).await });
            tokio::spawn(async move {
                let mut bytes = vec![0; 4096];
                while let Ok(read @ 1..) = from.read(&mut bytes).await {
                    if !(is_first && cut.load(Ordering::SeqCst))
                        && on.write_all(&bytes[..read]).await.is_err()
                    {
                        return;
                    }
                }
            });
        }
    });
    (port, connections)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_open_connection_of_http_2_is_given_up() {
    let server = Server::new(None, true).await;
    let cut = Arc::new(AtomicBool::new(false));
    let (port, connections) = wire(server.port, cut.clone()).await;
    let keys = format!(
        "handler.http = {{ url = \"http://127.0.0.1:{port}/\", version = \"2\" }}\ntimeout = \"4s\"\n\
         retry.outage = \"exponential(100ms..100ms x1)\""
    );
    let stage = stage().await;
    let running = run(&stage, &keys).await;
    send(&stage, &["before"]).await;
    until_status(&running, "handled", |status| status.counts.handled == 1).await;
    cut.store(true, Ordering::SeqCst);
    send(&stage, &["after"]).await;
    let status = until_status(&running, "handled", |status| status.counts.handled == 2).await;
    assert_eq!((status.counts.buried, connections.load(Ordering::SeqCst)), (0, 2));
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_may_ask_for_our_certificate() {
    let authority = Authority::new();
    let server = Server::new(Some(authority.server(&[b"http/1.1"], true)), false).await;
    let (certificate, key) = (authority.file("client.pem"), authority.file("client.key"));
    let more = format!(", certificate = \"{}\", private-key = \"{}\"", certificate.display(), key.display());
    handles_ten(&keys(server.port, &authority.file("ca.pem"), &more)).await;
    assert_eq!(server.counts(), (10, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_somebody_else_is_refused_and_that_is_an_outage() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = Server::new(Some(authority.server(&[b"http/1.1"], false)), false).await;
    let stage = stage().await;
    let rule = "\n[[subscription.classify]]\ncode = \"tls\"\nclass = \"permanent\"\n";
    let running = run(&stage, &format!("{}{rule}", keys(server.port, &other.file("ca.pem"), ""))).await;
    send(&stage, &["one"]).await;
    let letters = stage.letters("orders.g.dlq", 1).await.unwrap();
    running.stop().await.unwrap();
    let told = header(&letters[0], "redrive-error-message");
    assert!(told.contains("no TLS: invalid peer certificate"), "{told}");
    assert_eq!(server.counts(), (0, 0));
}

#[test]
fn files_that_cannot_be_used_are_refused_before_anything_runs() {
    let authority = Authority::new();
    authority.sign("localhost");
    let nonsense = authority.file("nonsense.pem");
    std::fs::write(&nonsense, "nonsense").unwrap();
    let file = |name: &str| authority.file(name).display().to_string();
    let refused = |more: &str| {
        let keys = format!("handler.http = {{ url = \"https://localhost/a\"{more} }}");
        redrive_push::handled(&ground::configured(&keys))
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    let pair = |certificate: &str, key: &str| {
        format!(
            ", ca = \"{}\", certificate = \"{}\", private-key = \"{}\"",
            file("ca.pem"),
            file(certificate),
            file(key)
        )
    };
    for (more, told) in [
        (format!(", ca = \"{}\"", file("gone.pem")), "ca: "),
        (format!(", ca = \"{}\"", file("nonsense.pem")), "there is no certificate in"),
        (pair("gone.pem", "client.key"), "certificate: "),
        (pair("client.pem", "nonsense.pem"), "there is no key in"),
        (", ca = \"/\"".to_owned(), "cannot be read"),
    ] {
        let error = refused(&more);
        assert!(error.starts_with("orders as g: ") && error.contains(told), "{more}: {error}");
    }
    let pair = pair("client.pem", "client.key");
    assert_eq!(refused(&pair), "");
    // A key that was made for another certificate.
    let before = std::fs::read(authority.file("client.key")).unwrap();
    authority.sign("localhost");
    std::fs::write(authority.file("client.key"), before).unwrap();
    assert!(refused(&pair).contains("cannot be used"), "{}", refused(&pair));
}
