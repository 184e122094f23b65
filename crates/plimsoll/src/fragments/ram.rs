//! The tier in memory: bytes of fragments, at most so many.
//! Never reads a disk: what is not here is its caller's to find, and what has to go its caller's to take one tier down.

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_fragments::Digest;
use plimsoll_fragments::index::Fragment;
use plimsoll_fragments::placement::Placement;

/// Bytes of fragments in memory.
pub(super) struct RamTier {
    placement: Placement<Digest>,
    bytes: HashMap<Digest, (Arc<Vec<u8>>, Fragment)>,
}

impl RamTier {
    pub(super) fn new(capacity: u64) -> Self {
        Self { placement: Placement::new(capacity), bytes: HashMap::new() }
    }

    pub(super) fn held(&self) -> u64 {
        self.placement.held()
    }

    pub(super) fn capacity(&self) -> u64 {
        self.placement.capacity()
    }

    pub(super) fn has(&self, fragment: &Fragment) -> bool {
        self.bytes.contains_key(&fragment.digest)
    }

    /// Whether so many bytes fit without anything going for them.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        self.held() + bytes <= self.capacity()
    }

    /// The bytes of a fragment, if they are here. Whoever takes them checks them, without keeping others from the tier.
    pub(super) fn get(&self, fragment: &Fragment) -> Option<Arc<Vec<u8>>> {
        self.bytes.get(&fragment.digest).map(|(bytes, _)| Arc::clone(bytes))
    }

    /// A fragment was used, and these are its bytes. Gives what has to go one tier down.
    pub(super) fn used(
        &mut self,
        fragment: &Fragment,
        bytes: &Arc<Vec<u8>>,
        cost: f64,
    ) -> Vec<(Arc<Vec<u8>>, Fragment)> {
        self.bytes.insert(fragment.digest, (Arc::clone(bytes), *fragment));
        let gone = self.placement.used(fragment.digest, fragment.bytes, cost);
        gone.iter().filter_map(|digest| self.bytes.remove(digest)).collect()
    }

    pub(super) fn forget(&mut self, fragment: &Fragment) {
        self.bytes.remove(&fragment.digest);
        self.placement.remove(&fragment.digest);
    }

    pub(super) fn hint(&mut self, fragments: impl IntoIterator<Item = Fragment>, cost: f64) {
        self.placement.hint(fragments.into_iter().map(|fragment| (fragment.digest, fragment.bytes, cost)));
    }

    pub(super) fn withdraw(&mut self, fragments: impl IntoIterator<Item = Fragment>) {
        self.placement.withdraw(fragments.into_iter().map(|fragment| fragment.digest));
    }

    pub(super) fn pin(&mut self, fragment: &Fragment) {
        self.placement.pin(fragment.digest, fragment.bytes);
    }

    pub(super) fn unpin(&mut self, fragment: &Fragment) {
        self.placement.unpin(&fragment.digest);
    }

    /// Changes a byte, as broken memory would.
    pub(super) fn corrupt(&mut self, fragment: &Fragment) -> bool {
        let Some((bytes, _)) = self.bytes.get_mut(&fragment.digest) else { return false };
        let mut changed = bytes.to_vec();
        changed[0] ^= 1;
        *bytes = Arc::new(changed);
        true
    }
}
