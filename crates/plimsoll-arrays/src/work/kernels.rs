//! One coarser level from a finer one as a kernel, and its twin: the same bytes on every device.
//! Never reduces what devices could round differently: means of floats stay on the CPU, and so do 64-bit elements.
//! Invariant: the kernel gives the bytes of [`reference()`].

use bytemuck::{Pod, Zeroable};
use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::{Access, Backend, Buffer, Kernel, Launch, Twin};

use crate::data_type::DataType;
use crate::layout::Layout;
use crate::levels::{Block, Reduction, reference};

/// Dimensions that the kernel has; fewer are filled up with ones in front.
pub(super) const RANK: usize = 5;
/// Dimensions that are halved at once at most: a window holds eight elements.
const HALVED_MAX: usize = 3;
/// Words that one workgroup writes.
pub(super) const GROUP: u32 = 64;
/// Workgroups side by side; more go into further rows.
pub(super) const ROW_GROUPS: u32 = 32_768;
/// Bytes of a level that the kernel counts through without its numbers wrapping.
pub(super) const LEVEL_BYTES_MAX: u64 = 1 << 31;

/// As the kernel has them; see there.
#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    finer: [u32; 4],
    coarser: [u32; 4],
    finer_last: u32,
    coarser_last: u32,
    halved: u32,
    elements: u32,
    width: u32,
    kind: u32,
    reduction: u32,
    row: u32,
}

static REDUCE: Kernel = Kernel {
    name: "array_reduce",
    wgsl: include_str!("reduce.wgsl"),
    entry: "array_reduce",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: reduce_twin,
};

/// What an element is to the kernel: one line for each type that it knows.
const TYPES: [(DataType, u32, u32); 8] = [
    (DataType::U8, 1, 0),
    (DataType::U16, 2, 0),
    (DataType::U32, 4, 0),
    (DataType::I8, 1, 1),
    (DataType::I16, 2, 1),
    (DataType::I32, 4, 1),
    (DataType::F16, 2, 2),
    (DataType::F32, 4, 2),
];

fn reduce_twin(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let known = TYPES.iter().find(|(_, width, kind)| (*width, *kind) == (params.width, params.kind));
    let data_type = known.expect("a type that the kernel knows").0;
    let reduction = Reduction::ALL[params.reduction as usize];
    let [a, b, c, d] = params.finer.map(|size| size as usize);
    let shape = [a, b, c, d, params.finer_last as usize];
    let halved: [bool; RANK] = std::array::from_fn(|dimension| params.halved >> dimension & 1 == 1);
    let (finer, coarser) = twin.words_from_to(0, 1);
    let bytes = shape.iter().product::<usize>() * data_type.bytes();
    let finer = &bytemuck::cast_slice::<u32, u8>(finer)[..bytes];
    let mut reduced = Vec::new();
    reference(data_type, reduction, Block { elements: finer, shape: &shape, halved: &halved }, &mut reduced);
    // The kernel writes whole words.
    reduced.resize(reduced.len().next_multiple_of(4), 0);
    bytemuck::cast_slice_mut::<u32, u8>(coarser)[..reduced.len()].copy_from_slice(&reduced);
}

/// Whether the kernel makes the same bytes of such elements as the CPU does.
pub fn reduces_on_gpu(data_type: DataType, reduction: Reduction) -> bool {
    let is_float = matches!(data_type, DataType::F16 | DataType::F32);
    let is_known = TYPES.iter().any(|(known, ..)| *known == data_type);
    is_known && !(is_float && reduction == Reduction::Mean)
}

/// Whether the levels of an array can be made on a GPU. An array of one level has nothing to make.
pub fn runs_on_gpu(layout: &Layout) -> bool {
    let levels = layout.levels();
    let fits = levels[0].grid.rank() <= RANK && levels[0].grid.step_bytes() <= LEVEL_BYTES_MAX;
    let is_few = |halved: &[bool]| halved.iter().filter(|halved| **halved).count() <= HALVED_MAX;
    let are_windows_small = levels.iter().all(|level| is_few(&level.halved));
    levels.len() > 1 && fits && are_windows_small && reduces_on_gpu(layout.data_type(), layout.reduction())
}

/// Bytes of the buffer for a level of so many bytes.
pub fn buffer_bytes(bytes: u64) -> Bytes {
    Bytes(bytes.next_multiple_of(4).max(4))
}

/// One step from a level to the next coarser one.
#[derive(Copy, Clone, Debug)]
pub struct ReduceStep<'a> {
    /// What the elements are.
    pub data_type: DataType,
    /// How a window becomes one of them.
    pub reduction: Reduction,
    /// Elements of the finer level along each dimension.
    pub shape: &'a [usize],
    /// Which dimensions are halved.
    pub halved: &'a [bool],
}

impl ReduceStep<'_> {
    /// Elements of the coarser level along each dimension.
    pub fn reduced_shape(&self) -> Vec<usize> {
        Block { elements: &[], shape: self.shape, halved: self.halved }.reduced_shape()
    }

    /// Records that the level in `finer` is reduced into `coarser`.
    ///
    /// # Errors
    /// As [`Backend::launch`]; [`Fault::WorkFailed`] if the kernel cannot do it, see [`reduces_on_gpu`].
    pub fn launch(&self, finer: &Buffer, coarser: &Buffer, backend: &mut dyn Backend) -> Result<(), Fault> {
        let mut params = self.params()?;
        let words = params.elements.div_ceil(4 / params.width);
        let groups = words.div_ceil(GROUP).max(1);
        let across = groups.min(ROW_GROUPS);
        params.row = across * GROUP;
        let (buffers, params) = (&[finer, coarser][..], bytemuck::bytes_of(&params));
        backend.launch(&Launch { kernel: &REDUCE, buffers, params, groups: [across, groups.div_ceil(across), 1] })
    }

    fn params(&self) -> Result<Params, Fault> {
        let Self { data_type, reduction, shape, halved } = *self;
        let known = TYPES.iter().find(|(known, ..)| *known == data_type);
        let known = known.filter(|_| reduces_on_gpu(data_type, reduction) && shape.len() <= RANK);
        let is_small = halved.iter().filter(|halved| **halved).count() <= HALVED_MAX;
        let bytes = shape.iter().product::<usize>() as u64 * data_type.bytes() as u64;
        let Some((_, width, kind)) = known.filter(|_| is_small && bytes <= LEVEL_BYTES_MAX) else {
            return Err(Fault::work(format!("{reduction} of {data_type}, {shape:?}, is not for the kernel")));
        };
        let finer = padded(shape.iter().map(|size| *size as u32), 1);
        let flags = padded(halved.iter().copied(), false);
        let coarser: [u32; RANK] = std::array::from_fn(|at| if flags[at] { finer[at].div_ceil(2) } else { finer[at] });
        let number = Reduction::ALL.iter().position(|known| *known == reduction).unwrap_or_default();
        Ok(Params {
            finer: std::array::from_fn(|at| finer[at]),
            coarser: std::array::from_fn(|at| coarser[at]),
            finer_last: finer[RANK - 1],
            coarser_last: coarser[RANK - 1],
            halved: (0..RANK).map(|at| u32::from(flags[at]) << at).sum(),
            elements: coarser.iter().product(),
            width: *width,
            kind: *kind,
            reduction: number as u32,
            row: 0,
        })
    }
}

/// Five of them, filled up in front.
pub(super) fn padded<T: Copy>(given: impl ExactSizeIterator<Item = T>, filling: T) -> [T; RANK] {
    let mut all = [filling; RANK];
    let first = RANK - given.len();
    all[first..].iter_mut().zip(given).for_each(|(to, from)| *to = from);
    all
}
