//! Whom an endpoint must be to be believed, and who we are to it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use redrive_config::Http;
use redrive_core::settings::{HttpVersion, Place};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::Wrong;

/// What TLS to this endpoint needs; none if it has no TLS.
pub(super) fn config(http: &Http) -> Result<Option<Arc<ClientConfig>>, Wrong> {
    if !matches!(http.url.place, Place::Host { tls: true, .. }) {
        return Ok(None);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| (format!("TLS cannot be set up: {error}"), "use another build".to_owned()))?
        .with_root_certificates(roots(http.ca.as_deref())?);
    let mut config = match &http.identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates("certificate", certificate)?;
            let key_der = PrivateKeyDer::from_pem_slice(&read("private-key", key)?).map_err(|_| {
                let what = format!("private-key: there is no key in {}", key.display());
                (what, "name a file in PEM, which begins with -----BEGIN PRIVATE KEY-----".to_owned())
            })?;
            builder.with_client_auth_cert(chain, key_der).map_err(|error| {
                let what = format!("certificate: {} cannot be used: {error}", certificate.display());
                (what, "name a certificate and the key that was made for it".to_owned())
            })?
        }
    };
    config.alpn_protocols = match http.version {
        HttpVersion::Auto => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        HttpVersion::One => vec![b"http/1.1".to_vec()],
        HttpVersion::Two => vec![b"h2".to_vec()],
    };
    Ok(Some(Arc::new(config)))
}

/// Those of the file, else those that the system trusts.
fn roots(ca: Option<&Path>) -> Result<RootCertStore, Wrong> {
    let mut roots = RootCertStore::empty();
    let Some(ca) = ca else {
        let (added, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if added == 0 {
            let what = "this system trusts no certificates, and the url needs one to be trusted";
            return Err((what.to_owned(), "name a file of certificates as handler.http.ca".to_owned()));
        }
        return Ok(roots);
    };
    for certificate in certificates("ca", ca)? {
        roots.add(certificate).map_err(|error| {
            let what = format!("ca: {} holds a certificate that cannot be used: {error}", ca.display());
            (what, "name a file with the certificates of whom to trust".to_owned())
        })?;
    }
    Ok(roots)
}

fn certificates(key: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, Wrong> {
    let bytes = read(key, file)?;
    let read: Vec<_> = CertificateDer::pem_slice_iter(&bytes).filter_map(Result::ok).collect();
    if read.is_empty() {
        let what = format!("{key}: there is no certificate in {}", file.display());
        return Err((what, "name a file in PEM, which begins with -----BEGIN CERTIFICATE-----".to_owned()));
    }
    Ok(read)
}

fn read(key: &str, file: &Path) -> Result<Vec<u8>, Wrong> {
    fs::read(file).map_err(|error| {
        let what = format!("{key}: {} cannot be read: {error}", file.display());
        (what, format!("name a file that is there as handler.http.{key}"))
    })
}
