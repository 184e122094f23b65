//! The dashboard's files, as they are served. They come with the program and ask nothing of the internet.
//! Never makes a page: what it shows comes from the JSON API (`dashboard.js`).
//! Invariant: every file that the page names is here (`tests`).

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
pub(crate) const FILES: &[File] = &[
    File { path: "/", content_type: "text/html; charset=utf-8", text: include_str!("index.html") },
    File { path: "/dashboard.css", content_type: "text/css; charset=utf-8", text: include_str!("dashboard.css") },
    File { path: "/dashboard.js", content_type: "text/javascript; charset=utf-8", text: include_str!("dashboard.js") },
    File { path: "/plot.js", content_type: "text/javascript; charset=utf-8", text: include_str!("plot.js") },
    File { path: "/icon.svg", content_type: "image/svg+xml", text: include_str!("icon.svg") },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_page_names_is_served_and_nothing_is_fetched_from_elsewhere() {
        let page = FILES[0].text;
        let named = page.split(['"', ' ']).filter(|word| [".css", ".js", ".svg"].iter().any(|end| word.ends_with(end)));
        let named: Vec<String> = named.map(|word| format!("/{word}")).collect();
        assert_eq!(named.len(), FILES.len() - 1, "{named:?}");
        for name in named {
            assert!(FILES.iter().any(|file| file.path == name), "{name} is not served");
        }
        for file in FILES {
            let addresses = file.text.matches("://").count();
            assert_eq!(addresses, file.text.matches("http://www.w3.org/").count(), "{} names an address", file.path);
        }
    }
}
