//! Names in documents that stand for nothing in this workspace, as data, each with the reason.
//! A line that no document needs any more fails the test.

/// What a document may name although nothing here is called so.
pub(crate) struct Allowed {
    pub(crate) name: &'static str,
    pub(crate) why: &'static str,
}

/// Crates and modules of others: what is below them is theirs to keep.
pub(crate) const OF_OTHERS: &[&str] = &["std", "core", "alloc", "wgpu", "serde", "rayon", "tokio", "loom"];

/// All of them.
pub(crate) const ALLOWED: &[Allowed] = &[
    Allowed { name: "NO_COLOR", why: "a variable that many programs heed (no-color.org)" },
    Allowed { name: "Debug", why: "std's trait" },
    Allowed { name: "Stdout", why: "std's type" },
    Allowed { name: "Drop", why: "std's trait" },
    Allowed { name: "AWS_ACCESS_KEY_ID", why: "a variable that programs for S3 heed" },
    Allowed { name: "AWS_ENDPOINT_URL", why: "a variable that programs for S3 heed" },
    Allowed { name: "SSL_CERT_FILE", why: "a variable that programs with TLS heed" },
    Allowed { name: "/api/openapi.json", why: "an address of the daemon" },
    Allowed { name: "/metrics", why: "an address of the daemon, where Prometheus looks" },
    Allowed { name: "/proc", why: "where Linux tells of processes" },
    Allowed { name: "/sys", why: "where Linux tells of devices" },
    Allowed { name: "Queue::write_buffer", why: "wgpu's method" },
    Allowed { name: "csf_lut_weber_fixed_size.json", why: "a table of the ColorVideoVDP project" },
    Allowed { name: "cvvdp_parameters.json", why: "a table of the ColorVideoVDP project" },
    Allowed { name: "display_models.json", why: "a table of the ColorVideoVDP project" },
    Allowed { name: "harbour.ppm", why: "an intermediate file of the commands beside it" },
    Allowed { name: "zarr.json", why: "the metadata file of every Zarr v3 array and group" },
];
