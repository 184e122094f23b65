//! Names of the parts of staged work: places in its lists, each its own type.

macro_rules! place_in {
    ($($(#[$doc:meta])* $name:ident)+) => {
        $($(#[$doc])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(super) usize);

        impl $name {
            /// Its place in the list of all.
            pub fn index(self) -> usize {
                self.0
            }
        })+
    };
}

place_in! {
    /// A stage. Stages are counted in the order in which an item passes through them.
    StageId
    /// A stream; the host is the first.
    StreamId
    /// A pool of buffers.
    PoolId
    /// An edge.
    EdgeId
}

impl StreamId {
    /// The thread that carries out the steps.
    pub const HOST: Self = Self(0);
}
