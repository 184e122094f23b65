//! The names in one tier, real or pretended, and how many bytes they have.
//! Never decides who goes.

/// No place: it is not in the tier.
pub(super) const ABSENT: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(super) struct Members<K> {
    keys: Vec<K>,
    held: u64,
    /// Whose turn it is to be looked at.
    turn: usize,
}

impl<K> Default for Members<K> {
    fn default() -> Self {
        Self { keys: Vec::new(), held: 0, turn: 0 }
    }
}

impl<K: Copy> Members<K> {
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// Gives its place.
    pub(super) fn enter(&mut self, key: K, bytes: u64) -> u32 {
        self.keys.push(key);
        self.held += bytes;
        self.keys.len() as u32 - 1
    }

    /// Gives the one that has this place now, if there is one.
    pub(super) fn leave(&mut self, place: u32, bytes: u64) -> Option<K> {
        self.keys.swap_remove(place as usize);
        self.held -= bytes;
        self.keys.get(place as usize).copied()
    }

    /// The places that are looked at now, at most so many: the newest, and those whose turn it is.
    pub(super) fn next_candidates(&mut self, most: usize) -> (usize, usize) {
        let count = self.keys.len().min(most);
        let from = self.turn.min(self.keys.len());
        self.turn = if from + count >= self.keys.len() { 0 } else { from + count };
        (from, count)
    }

    /// Those at the places that were given, round the end, and the newest.
    pub(super) fn at(&self, (from, count): (usize, usize)) -> impl Iterator<Item = &K> {
        let all = self.keys[from..].iter().chain(&self.keys[..from]);
        all.take(count).chain(self.keys.last())
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &K> {
        self.keys.iter()
    }
}
