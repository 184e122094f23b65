//! Why a declaration of staged work is refused.
//! Never says "invalid": each refusal names the part that has to change.

/// What is wrong with a declaration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StagesError {
    /// Something names a stream, stage, pool or edge that is not declared.
    #[error("there is no {what} '{name}'")]
    Unknown {
        /// What was looked for.
        what: &'static str,
        /// Under which name.
        name: &'static str,
    },
    /// Two of a kind have one name.
    #[error("two have the name '{0}'")]
    Twice(&'static str),
    /// Items leave by the last stage of the drain, so it has to be there, on the host.
    #[error("the last stage of the drain runs on the host: it is where items leave")]
    NoWayOut,
    /// A depth of zero, or more than [`crate::staged::DEPTH_LIMIT`].
    #[error("a depth of {0}")]
    Depth(usize),
    /// A pool without buffers, or of buffers that are empty or no whole number of words.
    #[error("pool '{0}' needs buffers of a multiple of 4 bytes")]
    NoBuffers(&'static str),
    /// A stage names a pool twice.
    #[error("stage '{stage}' uses pool '{pool}' twice")]
    UsedTwice {
        /// The stage.
        stage: &'static str,
        /// The pool.
        pool: &'static str,
    },
    /// Nobody writes the pool.
    #[error("no stage writes pool '{0}'")]
    NeverWritten(&'static str),
    /// What one item leaves for the next lies in one buffer.
    #[error("pool '{0}' is carried from item to item, so it has one buffer")]
    CarriedByMany(&'static str),
    /// Nothing says when what was written can be read.
    #[error("pool '{0}' has no edge from who writes it to who reads it")]
    NoReadyEdge(&'static str),
    /// Nothing says when a buffer can be used for another item.
    #[error("pool '{0}' has no edge from its last use to the next item's first")]
    NoConsumedEdge(&'static str),
    /// An edge guards a pool that one of its ends does not use.
    #[error("edge '{edge}' guards a pool that stage '{stage}' does not use")]
    NoUser {
        /// The edge.
        edge: &'static str,
        /// The end that does not use it.
        stage: &'static str,
    },
    /// An event between stages of one stream, which are in order anyway.
    #[error("edge '{0}' joins stages of one stream: its kind is stream order")]
    OneStream(&'static str),
    /// Stream order between stages of two streams.
    #[error("edge '{0}' joins stages of two streams, which nothing orders by itself")]
    TwoStreams(&'static str),
    /// Only the host raises a generation or keeps a rule.
    #[error("edge '{0}' has to come from the host, or wait for the drain of an earlier item")]
    NotTheHosts(&'static str),
    /// The order of an alias does not come from the edge that it names.
    #[error("edge '{edge}' is no alias of '{of}': without that it is in order, or both need their own")]
    NoAlias {
        /// The alias.
        edge: &'static str,
        /// What it names.
        of: &'static str,
    },
    /// Nothing orders two uses of a buffer.
    #[error("pool '{pool}' at depth {depth}: nothing keeps '{after}' waiting for '{before}' {}", distance(*.items))]
    NotOrdered {
        /// The pool.
        pool: &'static str,
        /// The stage that uses the buffer first.
        before: &'static str,
        /// The stage that must wait.
        after: &'static str,
        /// How many items later.
        items: u64,
        /// At which depth.
        depth: usize,
    },
    /// Everything is in order without this edge, at every depth: a wait that nobody needs.
    #[error("edge '{0}' orders nothing that is not in order without it")]
    NotNeeded(&'static str),
    /// A copy of the drain would lie behind a wait that only this drain ends.
    #[error(
        "stage '{stage}' of the drain lies on a stream that may hold the next kick's wait for '{edge}': a deadlock"
    )]
    DrainBehindGate {
        /// The stage of the drain.
        stage: &'static str,
        /// What the next kick waits for.
        edge: &'static str,
    },
    /// A stage waits for itself.
    #[error("stage '{0}' waits for itself")]
    Cycle(&'static str),
}

fn distance(items: u64) -> String {
    match items {
        0 => "of the same item".to_owned(),
        items => format!("of {items} items before"),
    }
}
