//! The dashboard's files, as they are served. They come with the program and ask nothing of the internet.
//! Never makes a page: what it shows comes from the JSON API.

/// A file of the page.
#[derive(Copy, Clone, Debug)]
pub(crate) struct File {
    /// Below the root.
    pub(crate) path: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) text: &'static str,
}

/// What browsers may load for this page: what comes with it, and nothing else.
pub(crate) const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// All of them; the first is the page.
pub(crate) const FILES: &[File] =
    &[File { path: "/", content_type: "text/html; charset=utf-8", text: include_str!("index.html") }];
