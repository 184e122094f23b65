//! A client for ranges of one file. Every wait has an end, every length is checked against what was asked for.
//! Never follows a server to another host over plain HTTP, nor from HTTPS back to HTTP.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use ureq::Agent;
use ureq::http::{Response, Uri, header};

use crate::error::FragmentError;
use crate::file::FileHead;

/// How long connecting may take.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How long a server may take to begin its answer.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// How long one request may take in all: what has come by then stays, and the rest is asked for again.
const REQUEST_MAX: Duration = Duration::from_secs(60);
/// Servers that one request may be sent on to.
const REDIRECTS_MAX: usize = 5;
/// TLS is not in every build: it takes longer to compile than all the rest of this.
const WITHOUT_TLS: &str =
    "this program was built without HTTPS: build it with the feature `https`, or use an http address";
/// What helps where the certificate is right and nobody said so.
const TRUST: &str = "if you trust whoever made it, name their certificate in SSL_CERT_FILE";
/// Bytes of a range that are handed on at a time.
const CHUNK: usize = 256 << 10;

/// A file behind a URL.
#[derive(Debug)]
pub struct Origin {
    agent: Agent,
    /// As the user wrote it.
    address: String,
    /// Where the ranges are, after redirects.
    url: Uri,
    /// What the file was when its head was read: ranges of another one are refused.
    etag: Option<String>,
    length: u64,
    head: FileHead,
    request_max: Duration,
}

impl Origin {
    /// Asks for the head of a file.
    ///
    /// # Errors
    /// If there is no server, or it gives something else.
    pub fn open(address: &str) -> Result<Self, FragmentError> {
        Self::open_within(address, REQUEST_MAX)
    }

    /// The same, with so much time for each request.
    ///
    /// # Errors
    /// As [`Origin::open`].
    pub fn open_within(address: &str, request_max: Duration) -> Result<Self, FragmentError> {
        let config = Agent::config_builder()
            .timeout_connect(Some(CONNECT_MAX.min(request_max)))
            .timeout_recv_response(Some(ANSWER_MAX.min(request_max)))
            .timeout_global(Some(request_max))
            .max_redirects(0)
            .http_status_as_error(false)
            .user_agent(concat!("plimsoll/", env!("CARGO_PKG_VERSION")));
        let agent = Agent::new_with_config(with_tls(config).build());
        let url = checked(address, address)?;
        let nothing = FileHead { index_offset: 0, index_bytes: 0, index_digest: crate::Digest([0; 32]) };
        let mut origin =
            Self { agent, address: address.to_owned(), url, etag: None, length: 0, head: nothing, request_max };
        let (answer, mut body) = origin.ask(0, FileHead::BYTES)?;
        origin.length = answer.length;
        // A weak one does not vouch for bytes.
        origin.etag = answer.etag.filter(|etag| !etag.starts_with("W/"));
        let mut head = [0; 64];
        body.read_exact(&mut head).map_err(|error| origin.broken(&error))?;
        origin.head = FileHead::parse(&head, address)?;
        if origin.head.index_offset.saturating_add(origin.head.index_bytes) != origin.length {
            return Err(FragmentError::malformed(address, "a file of fragments", "it ends before or behind its index"));
        }
        Ok(origin)
    }

    /// What the user wrote.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The head of the file.
    pub fn head(&self) -> &FileHead {
        &self.head
    }

    /// Reads a range and hands its bytes on as they come. Says how many came, also if it broke off.
    pub(super) fn read(
        &self,
        offset: u64,
        bytes: u64,
        mut take: impl FnMut(&[u8]) -> Result<(), FragmentError>,
    ) -> (u64, Result<(), FragmentError>) {
        let mut came = 0;
        let mut read = || {
            let begun = Instant::now();
            let (_, mut body) = self.ask(offset, bytes)?;
            let mut chunk = vec![0; CHUNK.min(bytes as usize)];
            while came < bytes {
                let wanted = chunk.len().min((bytes - came) as usize);
                let count = body.read(&mut chunk[..wanted]).map_err(|error| self.broken(&error))?;
                if count == 0 {
                    return Err(FragmentError::server(&self.address, "it ended its answer early"));
                }
                take(&chunk[..count])?;
                came += count as u64;
                if begun.elapsed() > self.request_max && came < bytes {
                    return Err(FragmentError::server(&self.address, "it is too slow"));
                }
            }
            Ok(())
        };
        let result = read();
        (came, result)
    }

    /// Why a request was not answered. A certificate that is not trusted is told as what it is: trying again is no use.
    fn refused(&self, error: &ureq::Error) -> FragmentError {
        let said = match error {
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                "nobody serves there; is the address right, and its server started?".to_owned()
            }
            ureq::Error::Io(error) => error.to_string(),
            error => error.to_string(),
        };
        let why = match said.split_once("invalid peer certificate: ") {
            Some((_, why)) => format!("its certificate is not trusted: {why}; {TRUST}"),
            None => said,
        };
        FragmentError::server(&self.address, why)
    }

    fn broken(&self, error: &dyn std::fmt::Display) -> FragmentError {
        FragmentError::server(&self.address, format!("the connection broke: {error}"))
    }

    /// Asks for a range, and follows redirects.
    fn ask(&self, offset: u64, bytes: u64) -> Result<(Answer, impl Read + use<>), FragmentError> {
        let mut url = self.url.clone();
        for _ in 0..=REDIRECTS_MAX {
            let range = format!("bytes={offset}-{}", offset + bytes - 1);
            let mut request =
                self.agent.get(&url).header(header::RANGE, range).header(header::ACCEPT_ENCODING, "identity");
            if let Some(etag) = &self.etag {
                request = request.header(header::IF_RANGE, etag);
            }
            let response = request.call().map_err(|error| self.refused(&error))?;
            if response.status().is_redirection() {
                url = self.onward(&url, &response)?;
                continue;
            }
            let answer = self.answer(&response, offset, bytes)?;
            return Ok((answer, response.into_body().into_reader()));
        }
        Err(FragmentError::server(&self.address, format!("it sends on more than {REDIRECTS_MAX} times")))
    }

    /// Where a redirect leads: the same host, or any over HTTPS; never from HTTPS to less.
    fn onward<T>(&self, from: &Uri, response: &Response<T>) -> Result<Uri, FragmentError> {
        let location = response.headers().get(header::LOCATION).and_then(|to| to.to_str().ok());
        let location = location.ok_or_else(|| FragmentError::server(&self.address, "it sends on to nowhere"))?;
        let absolute = match location.strip_prefix('/') {
            Some(path) if !path.starts_with('/') => {
                format!(
                    "{}://{}{location}",
                    from.scheme_str().unwrap_or("http"),
                    from.authority().map_or("", |to| to.as_str())
                )
            }
            _ => location.to_owned(),
        };
        let to = checked(&absolute, &self.address)?;
        let is_secure = to.scheme_str() == Some("https");
        let is_same_host = to.host() == from.host() && (is_secure || to.authority() == from.authority());
        let gets_less_secure = from.scheme_str() == Some("https") && !is_secure;
        if gets_less_secure || !(is_same_host || (is_secure && from.scheme_str() == Some("https"))) {
            return Err(FragmentError::server(
                &self.address,
                format!("it sends on to {to}; ask there yourself if you trust it"),
            ));
        }
        Ok(to)
    }

    /// Refuses whatever is not the range that was asked for.
    fn answer<T>(&self, response: &Response<T>, offset: u64, bytes: u64) -> Result<Answer, FragmentError> {
        let refuse = |why: &str| Err(FragmentError::server(&self.address, why));
        let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        match response.status().as_u16() {
            206 => {}
            200 if self.etag.is_some() => return refuse("the file there is another one now; start again"),
            200 => return refuse("it does not serve ranges"),
            416 => return refuse("it says that the file is shorter than it was; start again"),
            status => return refuse(&format!("it answers with status {status}")),
        }
        let range = text(header::CONTENT_RANGE).and_then(parse_range);
        let Some((first, last, length)) = range else { return refuse("it does not say which range it gives") };
        if (first, last) != (offset, offset + bytes - 1) || last >= length {
            return refuse(&format!(
                "it gives bytes {first} to {last} of {length} instead of {offset} to {}",
                offset + bytes - 1
            ));
        }
        if self.length != 0 && length != self.length {
            return refuse("the file there has another length now; start again");
        }
        if text(header::CONTENT_LENGTH).is_some_and(|length| length.parse() != Ok(bytes)) {
            return refuse("the length it announces is not that of the range");
        }
        let encoding = text(header::CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| encoding != "identity") {
            return refuse("it packs what it was asked to give as it is");
        }
        Ok(Answer { length, etag: text(header::ETAG).map(str::to_owned) })
    }
}

struct Answer {
    /// Of the whole file.
    length: u64,
    etag: Option<String>,
}

/// `bytes 0-63/1000`
fn parse_range(text: &str) -> Option<(u64, u64, u64)> {
    let (range, length) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?, length.parse().ok()?))
}

type Config = ureq::config::ConfigBuilder<ureq::typestate::AgentScope>;

/// TLS by ring, which builds in seconds, and the certificates that the system trusts, or `SSL_CERT_FILE` names.
#[cfg(feature = "https")]
fn with_tls(config: Config) -> Config {
    use ureq::tls::{RootCerts, TlsConfig};
    let ring = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).unversioned_rustls_crypto_provider(ring);
    config.tls_config(tls.build())
}

#[cfg(not(feature = "https"))]
fn with_tls(config: Config) -> Config {
    config
}

/// An address that can be asked.
fn checked(url: &str, address: &str) -> Result<Uri, FragmentError> {
    let parsed: Uri =
        url.parse().map_err(|error| FragmentError::server(address, format!("{url} is no address: {error}")))?;
    match parsed.scheme_str() {
        Some("http") if parsed.host().is_some() => Ok(parsed),
        Some("https") if cfg!(feature = "https") && parsed.host().is_some() => Ok(parsed),
        Some("https") => Err(FragmentError::server(address, WITHOUT_TLS)),
        _ => Err(FragmentError::server(address, format!("{url} is no http or https address"))),
    }
}
