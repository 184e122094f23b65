//! Neighbourhoods: the 3 x 3 around a pixel and, at all but the coarsest of the scales that are weighed, its parent at
//! the next coarser one. What the model is made of (sums of products), and what it says of each (energy).

use bytemuck::{Pod, Zeroable};
use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Buffer, Kernel, Twin, read_floats};

use super::model::{MEMBERS_MAX, Model};
use crate::metrics::structure::window::REACH;
use crate::run::Run;

static PRODUCTS: Kernel = Kernel {
    name: "products",
    wgsl: include_str!("neighbours.wgsl"),
    entry: "products",
    bindings: &[Access::Read, Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: products,
};

static ENERGY: Kernel = Kernel {
    name: "energy",
    wgsl: include_str!("neighbours.wgsl"),
    entry: "energy",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: energy,
};

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    width: u32,
    rows: u32,
    members: u32,
    first_out: u32,
}

/// Neighbourhoods that one workgroup takes, in each direction.
const TILE: [u32; 2] = [256, 16];

/// A plane on a device, and the plane of its parents, which counts only with ten members.
#[derive(Copy, Clone)]
pub(super) struct Family<'a> {
    pub(super) plane: &'a Buffer,
    pub(super) parent: &'a Buffer,
    /// Nine, or ten with the parent.
    pub(super) members: usize,
}

/// Pairs of members, each with itself among them.
pub(super) fn pairs_of(members: usize) -> usize {
    members * (members + 1) / 2
}

/// Sums of products, asked for plane by plane and read together.
pub(super) struct Products {
    partials: Buffer,
    asked: Vec<(usize, usize)>,
    words: u32,
}

fn tiles([width, rows]: [u32; 2]) -> [u32; 2] {
    [(width - 2).div_ceil(TILE[0]), (rows - 2).div_ceil(TILE[1])]
}

impl Products {
    /// Room for planes of these extents.
    pub(super) fn open(run: &mut Run<'_>, extents: &[[u32; 2]]) -> Result<Self, Fault> {
        let tiles = extents.iter().map(|&extent| tiles(extent).map(u64::from)).map(|[across, down]| across * down);
        let partials = run.allocate(tiles.sum::<u64>() * pairs_of(MEMBERS_MAX) as u64)?;
        Ok(Self { partials, asked: Vec::new(), words: 0 })
    }

    /// Forgets all sums, to begin anew.
    pub(super) fn begin(&mut self, run: &mut Run<'_>) -> Result<(), Fault> {
        self.asked.clear();
        self.words = 0;
        run.backend.poison(&self.partials)
    }

    /// Asks for the sums over a plane of `width` x `rows`.
    pub(super) fn add(&mut self, run: &mut Run<'_>, extent: [u32; 2], family: Family<'_>) -> Result<(), Fault> {
        let ([width, rows], [across, down]) = (extent, tiles(extent));
        let pairs = pairs_of(family.members);
        let params = Params { width, rows, members: family.members as u32, first_out: self.words };
        let buffers = [family.plane, family.parent, &self.partials];
        run.launch(&PRODUCTS, &buffers, &params, [across, down, pairs as u32])?;
        self.asked.push((pairs, (across * down) as usize));
        self.words += across * down * pairs as u32;
        Ok(())
    }

    /// For each plane, in the order in which they were asked for, the sum of each pair.
    pub(super) fn read(&mut self, run: &mut Run<'_>) -> Result<Vec<Vec<f64>>, Fault> {
        let partials = read_floats(run.backend, &self.partials, self.words as usize)?;
        let mut rest = &partials[..];
        let plane = |&(pairs, tiles): &(usize, usize)| {
            let (own, others) = rest.split_at(pairs * tiles);
            rest = others;
            own.chunks_exact(tiles).map(|tiles| tiles.iter().map(|&sum| f64::from(sum)).sum()).collect()
        };
        Ok(self.asked.iter().map(plane).collect())
    }
}

/// Writes the energy at every place of the window on `width` x `rows` pixels.
pub(super) fn energy_to(
    run: &mut Run<'_>,
    [width, rows]: [u32; 2],
    family: Family<'_>,
    whitening: &Buffer,
    to: &Buffer,
) -> Result<(), Fault> {
    let params = Params { width, rows, members: family.members as u32, first_out: 0 };
    run.over(&ENERGY, &[family.plane, family.parent, whitening, to], &params, width - REACH, rows - REACH)
}

/// Rows of the 3 x 3, and the row of parents, from the neighbourhood with this left edge on.
fn members_from<'a>(rows: [&'a [f32]; 3], parent: Option<&'a [f32]>, left: usize, count: usize) -> Vec<&'a [f32]> {
    let own = (0..9).map(|member| &rows[member / 3][left + member % 3..][..count]);
    own.chain(parent.map(|parent| &parent[left + 1..][..count])).collect()
}

fn dot(one: &[f32], other: &[f32]) -> f32 {
    let ((ones, rest), (others, rest_other)) = (one.as_chunks::<8>(), other.as_chunks::<8>());
    let mut lanes = [0.0_f32; 8];
    for (one, other) in ones.iter().zip(others) {
        (0..8).for_each(|lane| lanes[lane] += one[lane] * other[lane]);
    }
    let rest: f32 = rest.iter().zip(rest_other).map(|(one, other)| one * other).sum();
    lanes.iter().sum::<f32>() + rest
}

/// Adds the products of members of a row of neighbourhoods, pair by pair.
pub(super) fn add_products(rows: [&[f32]; 3], parent: Option<&[f32]>, sums: &mut [f64]) {
    // Runs as long as the device's: single precision holds the sum of so many well.
    let count = rows[0].len() - 2;
    for left in (0..count).step_by(TILE[0] as usize) {
        let members = members_from(rows, parent, left, (count - left).min(TILE[0] as usize));
        let pairs = (0..members.len()).flat_map(|one| (one..members.len()).map(move |other| (one, other)));
        for (sum, (one, other)) in sums.iter_mut().zip(pairs) {
            *sum += f64::from(dot(members[one], members[other]));
        }
    }
}

/// The energy at a row of places of the window.
pub(super) fn energy_row(rows: [&[f32]; 3], parent: Option<&[f32]>, whitening: &[f32], out: &mut [f32]) {
    let count = out.len();
    let members = members_from(rows, parent, 4, count);
    let share = 1.0 / members.len() as f32;
    let mut along = vec![0.0; count];
    out.fill(0.0);
    for weights in whitening.chunks_exact(MEMBERS_MAX).take(members.len()) {
        along.fill(0.0);
        for (member, weight) in members.iter().zip(weights) {
            along.iter_mut().zip(*member).for_each(|(along, member)| *along += weight * member);
        }
        out.iter_mut().zip(&along).for_each(|(out, along)| *out += along * along);
    }
    out.iter_mut().for_each(|out| *out *= share);
}

/// The model's whitening, on a device.
pub(super) fn upload(run: &mut Run<'_>, model: &Model, to: &Buffer) -> Result<(), Fault> {
    run.backend.write(to, plimsoll_core::Bytes::ZERO, bytemuck::cast_slice(&model.whitening))
}

fn products(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let [across, down, pairs] = twin.groups.map(|groups| groups as usize);
    let (width, rows) = (params.width as usize, params.rows as usize);
    let (reads, mut writes) = twin.reads_and_writes();
    let row = |plane: usize, y: usize| &reads[plane][y * width..][..width];
    let out = &mut writes[0][params.first_out as usize..][..across * down * pairs];
    for (tile, left) in (0..width - 2).step_by(TILE[0] as usize).enumerate() {
        let span = left..width.min(left + TILE[0] as usize + 2);
        for (band, top) in (0..rows - 2).step_by(TILE[1] as usize).enumerate() {
            let mut sums = vec![0.0; pairs];
            for y in top..(rows - 2).min(top + TILE[1] as usize) {
                let three = [0, 1, 2].map(|by: usize| &row(0, y + by)[span.clone()]);
                let parent = (params.members == 10).then(|| &row(1, y + 1)[span.clone()]);
                add_products(three, parent, &mut sums);
            }
            for (pair, sum) in sums.into_iter().enumerate() {
                out[(pair * down + band) * across + tile] = sum as f32;
            }
        }
    }
}

fn energy(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let (width, places) = (params.width as usize, (params.width - REACH) as usize);
    let (reads, mut writes) = twin.reads_and_writes();
    let row = |plane: usize, y: usize| &reads[plane][y * width..][..width];
    for (y, out) in writes[0].chunks_exact_mut(places).take((params.rows - REACH) as usize).enumerate() {
        let three = [4, 5, 6].map(|by: usize| row(0, y + by));
        let parent = (params.members == 10).then(|| row(1, y + 5));
        energy_row(three, parent, reads[2], out);
    }
}
