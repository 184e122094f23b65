//! Who may ask over HTTP at all: pages of other sites may not, names that point here may not, and who has no token may
//! change nothing.
//! Never says more than that it is refused.
//! Invariant: every request passes here before any route sees it.

use std::net::SocketAddr;

use axum::http::{HeaderMap, Method, StatusCode, header};

/// What a site lets in.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    token: String,
    /// `127.0.0.1:7878`, `localhost:7878`, …
    hosts: Vec<String>,
}

impl Guard {
    pub(super) fn new(token: String, address: SocketAddr) -> Self {
        let port = address.port();
        let mut hosts = vec![address.to_string(), format!("localhost:{port}")];
        if port == 80 {
            hosts.extend([address.ip().to_string(), "localhost".to_owned()]);
        }
        Self { token, hosts }
    }

    /// Whether a request may go on.
    ///
    /// # Errors
    /// How it is refused.
    pub(super) fn admit(&self, method: &Method, headers: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
        // A name of somebody else's that points to this machine would make his pages ours.
        let host = text(headers, header::HOST).unwrap_or_default();
        if !self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host)) {
            return Err((StatusCode::MISDIRECTED_REQUEST, "this daemon answers to its own address only"));
        }
        if headers.contains_key(header::ORIGIN) && !self.is_own(text(headers, header::ORIGIN).unwrap_or_default()) {
            return Err((StatusCode::FORBIDDEN, "pages of other sites may not ask"));
        }
        if text_of(headers, "sec-fetch-site").is_some_and(|site| site == "cross-site") {
            return Err((StatusCode::FORBIDDEN, "pages of other sites may not ask"));
        }
        match *method {
            Method::GET | Method::HEAD => Ok(()),
            _ if self.has_token(headers) => Ok(()),
            _ => Err((StatusCode::UNAUTHORIZED, "changes need the token: Authorization: Bearer …")),
        }
    }

    fn is_own(&self, origin: &str) -> bool {
        origin
            .strip_prefix("http://")
            .is_some_and(|host| self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host)))
    }

    fn has_token(&self, headers: &HeaderMap) -> bool {
        let said = text(headers, header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        said.is_some_and(|said| same(said.trim().as_bytes(), self.token.as_bytes()))
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn text_of<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Compared in a time that tells nothing of where they differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(method: Method, headers: &[(&'static str, &str)]) -> Result<(), StatusCode> {
        let guard = Guard::new("secret".to_owned(), "127.0.0.1:7878".parse().unwrap());
        let headers = headers.iter().map(|(name, value)| {
            (header::HeaderName::from_static(name), header::HeaderValue::from_str(value).unwrap())
        });
        guard.admit(&method, &headers.collect()).map_err(|(status, _)| status)
    }

    const HOST: (&str, &str) = ("host", "127.0.0.1:7878");

    #[test]
    fn this_machine_may_look() {
        assert_eq!(admitted(Method::GET, &[HOST]), Ok(()));
        assert_eq!(admitted(Method::GET, &[("host", "LocalHost:7878")]), Ok(()));
        assert_eq!(admitted(Method::GET, &[HOST, ("origin", "http://localhost:7878")]), Ok(()));
    }

    #[test]
    fn names_that_point_here_may_not() {
        for host in ["evil.example:7878", "127.0.0.1", "127.0.0.1:7879", ""] {
            assert_eq!(admitted(Method::GET, &[("host", host)]), Err(StatusCode::MISDIRECTED_REQUEST), "{host}");
        }
        assert_eq!(admitted(Method::GET, &[]), Err(StatusCode::MISDIRECTED_REQUEST));
    }

    #[test]
    fn pages_of_other_sites_may_not_even_look() {
        for origin in ["http://evil.example", "https://127.0.0.1:7878", "null", ""] {
            assert_eq!(admitted(Method::GET, &[HOST, ("origin", origin)]), Err(StatusCode::FORBIDDEN), "{origin}");
        }
        assert_eq!(admitted(Method::GET, &[HOST, ("sec-fetch-site", "cross-site")]), Err(StatusCode::FORBIDDEN));
    }

    #[test]
    fn changes_need_the_token() {
        let changed = |value: &str| admitted(Method::POST, &[HOST, ("authorization", value)]);
        assert_eq!(changed("Bearer secret"), Ok(()));
        for wrong in ["", "secret", "Bearer", "Bearer secre", "Bearer secret1", "Basic secret"] {
            assert_eq!(changed(wrong), Err(StatusCode::UNAUTHORIZED), "{wrong}");
        }
        assert_eq!(admitted(Method::DELETE, &[HOST]), Err(StatusCode::UNAUTHORIZED));
        assert_eq!(admitted(Method::OPTIONS, &[HOST]), Err(StatusCode::UNAUTHORIZED), "and no preflight is answered");
    }
}
