//! The listener with real sockets on 127.0.0.1, a rustls client and hyper's client.

use std::net::SocketAddr;

use http_body_util::{BodyExt, Empty, Full};
use hyper::client::conn;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use tokio_rustls::TlsConnector;

use super::*;
use crate::tls::{PemPair, TlsOptions};
use crate::{BindOptions, Error};

struct Ca {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    der: CertificateDer<'static>,
}

fn ca(name: &str) -> Ca {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let cert = params.self_signed(&key).unwrap();
    Ca { pem: cert.pem(), der: cert.der().clone(), issuer: Issuer::new(params, key) }
}

fn leaf(
    ca: &Ca,
    name: &str,
    usage: ExtendedKeyUsagePurpose,
) -> (CertificateDer<'static>, KeyPair, String) {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.extended_key_usages = vec![usage];
    let key = KeyPair::generate().unwrap();
    let cert = params.signed_by(&key, &ca.issuer).unwrap();
    (cert.der().clone(), key, cert.pem())
}

fn options(server: &Ca, clients: Option<&Ca>) -> TlsOptions {
    let pair = |name| {
        let (_, key, chain) = leaf(server, name, ExtendedKeyUsagePurpose::ServerAuth);
        PemPair { chain: chain.into_bytes(), key: key.serialize_pem().into_bytes() }
    };
    TlsOptions {
        default: pair("localhost"),
        sni: vec![
            (vec![], pair("other.example")),
            (vec!["*.wild.example".into()], pair("a.wild.example")),
        ],
        client_ca: clients.map(|c| c.pem.clone().into_bytes()),
        min_version: String::new(),
        cipher_suites: vec![],
        curves: vec![],
        http2: true,
    }
}

fn listen() -> Listener {
    Listener::bind("127.0.0.1:0".parse().unwrap(), BindOptions::default()).unwrap()
}

/// Answers with what the handler sees of the client certificate.
async fn who(_request: Request<Incoming>, peer: Arc<Peer>) -> Response<Full<Bytes>> {
    let text = match peer.cert.trusted() {
        Ok(None) => "none",
        Ok(Some(_)) => "verified",
        Err(_) => "refused",
    };
    Response::new(Full::new(Bytes::from_static(text.as_bytes())))
}

async fn connect(
    addr: SocketAddr,
    server: &Ca,
    name: &'static str,
    client: Option<(CertificateDer<'static>, &KeyPair)>,
    alpn: &[&[u8]],
) -> tokio_rustls::client::TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(server.der.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match client {
        None => builder.with_no_client_auth(),
        Some((cert, key)) => {
            let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
            builder.with_client_auth_cert(vec![cert], key).unwrap()
        }
    };
    config.alpn_protocols = alpn.iter().map(|p| p.to_vec()).collect();
    let tcp = TcpStream::connect(addr).await.unwrap();
    let name = ServerName::try_from(name).unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap()
}

async fn get(
    stream: tokio_rustls::client::TlsStream<TcpStream>,
    uri: &str,
) -> (http::Version, u16, String) {
    let h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let io = TokioIo::new(stream);
    let request =
        Request::get(uri).header("host", "localhost").body(Empty::<Bytes>::new()).unwrap();
    let response = if h2 {
        let (mut sender, conn) = conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(conn);
        sender.send_request(request).await.unwrap()
    } else {
        let (mut sender, conn) = conn::http1::handshake(io).await.unwrap();
        tokio::spawn(conn);
        sender.send_request(request).await.unwrap()
    };
    let (version, code) = (response.version(), response.status().as_u16());
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (version, code, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn client_certificates_and_protocols() {
    let (server, clients, stranger) = (ca("server"), ca("clients"), ca("stranger"));
    let tls = Arc::new(Tls::new(&options(&server, Some(&clients))).unwrap());
    let listener = listen();
    let addr = listener.addr();
    let serving = serve(listener, tls, 0, who);
    let good = leaf(&clients, "alice", ExtendedKeyUsagePurpose::ClientAuth);
    let bad = leaf(&stranger, "mallory", ExtendedKeyUsagePurpose::ClientAuth);
    let wrong_usage = leaf(&clients, "server", ExtendedKeyUsagePurpose::ServerAuth);
    for (cert, want) in [
        (None, "none"),
        (Some(&good), "verified"),
        (Some(&bad), "refused"),
        (Some(&wrong_usage), "refused"),
    ] {
        for (alpn, version) in
            [(b"h2".as_slice(), http::Version::HTTP_2), (b"http/1.1", http::Version::HTTP_11)]
        {
            let cert = cert.map(|(der, key, _)| (der.clone(), key));
            let stream = connect(addr, &server, "localhost", cert, &[alpn]).await;
            assert_eq!(get(stream, "/x").await, (version, 200, want.to_owned()));
        }
    }
    assert_eq!(serving.drain(Duration::from_secs(5)).await, Drained { n_cut: 0 });
}

#[tokio::test]
async fn names_choose_the_certificate_and_a_swap_counts_for_new_connections() {
    let (server, next) = (ca("server"), ca("next"));
    let tls = Arc::new(Tls::new(&options(&server, None)).unwrap());
    let listener = listen();
    let addr = listener.addr();
    let _serving = serve(listener, tls.clone(), 0, who);
    // The client checks the name, so a connection proves the choice.
    for name in ["localhost", "other.example", "a.wild.example"] {
        let stream = connect(addr, &server, name, None, &[]).await;
        assert_eq!(get(stream, "/").await.1, 200, "{name}");
    }
    tls.replace(&options(&next, None)).unwrap();
    let stream = connect(addr, &next, "localhost", None, &[b"h2"]).await;
    assert_eq!(get(stream, "/").await.1, 200);
}

#[tokio::test]
async fn headers_beyond_a_mebibyte_are_431() {
    let server = ca("server");
    let tls = Arc::new(Tls::new(&options(&server, None)).unwrap());
    let listener = listen();
    let addr = listener.addr();
    let _serving = serve(listener, tls, 0, who);
    for alpn in [b"h2".as_slice(), b"http/1.1"] {
        for (len, want) in [(900 << 10, 200), (1200 << 10, 431)] {
            let stream = connect(addr, &server, "localhost", None, &[alpn]).await;
            let (_, code, _) = get(stream, &format!("/?{}", "x".repeat(len.min(60 << 10)))).await;
            assert_eq!(code, 200);
            let stream = connect(addr, &server, "localhost", None, &[alpn]).await;
            assert_eq!(get_padded(stream, len).await, want, "{len} {alpn:?}");
        }
    }
}

async fn get_padded(stream: tokio_rustls::client::TlsStream<TcpStream>, len: usize) -> u16 {
    let h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let io = TokioIo::new(stream);
    let mut request = Request::get("/").header("host", "localhost");
    for _ in 0..20 {
        request = request.header("x-pad", "y".repeat(len / 20));
    }
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let response = if h2 {
        let (mut sender, conn) = conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(conn);
        sender.send_request(request).await
    } else {
        let (mut sender, conn) = conn::http1::handshake(io).await.unwrap();
        tokio::spawn(conn);
        sender.send_request(request).await
    };
    response.unwrap().status().as_u16()
}

#[tokio::test]
async fn drain_waits_for_what_is_in_flight() {
    let server = ca("server");
    for alpn in [b"h2".as_slice(), b"http/1.1"] {
        let tls = Arc::new(Tls::new(&options(&server, None)).unwrap());
        let listener = listen();
        let addr = listener.addr();
        let (go, arrived) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let handler = {
            let (go, arrived) = (go.clone(), arrived.clone());
            move |_: Request<Incoming>, _: Arc<Peer>| {
                let (go, arrived) = (go.clone(), arrived.clone());
                async move {
                    arrived.notify_one();
                    go.notified().await;
                    Response::new(Full::new(Bytes::from_static(b"done")))
                }
            }
        };
        let serving = serve(listener, tls, 0, handler);
        let stream = connect(addr, &server, "localhost", None, &[alpn]).await;
        let request = tokio::spawn(get(stream, "/"));
        arrived.notified().await;
        let (started, drain_started) = oneshot::channel();
        let drain = tokio::spawn(async move {
            started.send(()).unwrap();
            serving.drain(Duration::from_secs(10)).await
        });
        drain_started.await.unwrap();
        go.notify_one();
        assert_eq!(request.await.unwrap().2, "done");
        assert_eq!(drain.await.unwrap(), Drained { n_cut: 0 });
        assert!(TcpStream::connect(addr).await.is_err(), "nothing listens after a drain");
    }
}

/// The version of HTTP that the server saw, over a connection without TLS.
async fn clear_version<S>(stream: S, h2: bool) -> String
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let request = Request::builder().uri("http://localhost/").header("host", "localhost");
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let io = TokioIo::new(stream);
    let response = if h2 {
        let (mut sender, connection) =
            conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await
    } else {
        let (mut sender, connection) = conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await
    };
    let body = response.unwrap().into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn without_tls_both_versions_are_served() {
    let handler = |request: Request<Incoming>, _| async move {
        Response::new(Full::new(Bytes::from(format!("{:?}", request.version()))))
    };
    let listener = listen();
    let addr = listener.addr();
    let serving = serve_clear(listener, 0, handler);
    for (h2, version) in [(false, "HTTP/1.1"), (true, "HTTP/2.0")] {
        let stream = TcpStream::connect(addr).await.unwrap();
        assert_eq!(clear_version(stream, h2).await, version);
    }
    serving.drain(Duration::from_secs(10)).await;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    // One that was left behind is taken over, and an ordinary file is not.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let serving = serve_clear(Listener::bind_unix(&path).unwrap(), 0, handler);
    let stream = tokio::net::UnixStream::connect(&path).await.unwrap();
    assert_eq!(clear_version(stream, true).await, "HTTP/2.0");
    serving.drain(Duration::from_secs(10)).await;
    assert!(!path.exists(), "the socket goes with its server");
    std::fs::write(&path, "kept").unwrap();
    assert!(matches!(Listener::bind_unix(&path), Err(Error::BindUnix { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"kept");
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let first = listen();
    match Listener::bind(first.addr(), BindOptions::default()) {
        Err(Error::InUse { addr }) => assert_eq!(addr, first.addr()),
        other => panic!("{:?}", other.err()),
    }
}

#[test]
fn options_are_checked() {
    let server = ca("server");
    let check = |change: fn(&mut TlsOptions), want: &str| {
        let mut options = options(&server, None);
        change(&mut options);
        let got = Tls::new(&options).err().map(|e| e.to_string()).unwrap_or_default();
        assert_eq!(got, want);
    };
    check(|_| {}, "");
    check(|o| o.min_version = "VersionTLS13".into(), "");
    check(
        |o| o.min_version = "VersionTLS10".into(),
        "\"VersionTLS10\" is not a TLS version of this server: VersionTLS12 or VersionTLS13",
    );
    check(
        |o| {
            o.cipher_suites = ["TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"]
                .map(str::to_owned)
                .to_vec();
        },
        "",
    );
    check(
        |o| o.cipher_suites = vec!["TLS_RSA_WITH_RC4_128_SHA".into()],
        "\"TLS_RSA_WITH_RC4_128_SHA\" is not a TLS cipher suite of this server",
    );
    check(|o| o.curves = vec![4588, 29], "");
    check(|o| o.curves = vec![1], "TLS group 1 is not offered by this server");
    check(|o| o.default.key.clear(), "read TLS private key as PEM: no items found");
    check(|o| o.client_ca = Some(vec![]), "read client CA bundle as PEM: no certificate in it");
}
