//! Every reduction of every type, one window after the other: plain, and what everything faster is held against.

use half::f16;

use super::sample::Sample;
use super::{Block, Reduction};
use crate::data_type::DataType;

/// Appends the reduced block, plainly.
///
/// # Panics
///
/// If the elements are not as many as the shape says.
pub fn reference(data_type: DataType, reduction: Reduction, block: Block<'_>, out: &mut Vec<u8>) {
    block.check(data_type);
    match data_type {
        DataType::I8 => typed::<i8>(reduction, block, out),
        DataType::I16 => typed::<i16>(reduction, block, out),
        DataType::I32 => typed::<i32>(reduction, block, out),
        DataType::I64 => typed::<i64>(reduction, block, out),
        DataType::U8 => typed::<u8>(reduction, block, out),
        DataType::U16 => typed::<u16>(reduction, block, out),
        DataType::U32 => typed::<u32>(reduction, block, out),
        DataType::U64 => typed::<u64>(reduction, block, out),
        DataType::F16 => typed::<f16>(reduction, block, out),
        DataType::F32 => typed::<f32>(reduction, block, out),
        DataType::F64 => typed::<f64>(reduction, block, out),
    }
}

fn typed<S: Sample>(reduction: Reduction, block: Block<'_>, out: &mut Vec<u8>) {
    let reduced = block.reduced_shape();
    out.reserve(reduced.iter().product::<usize>() * S::BYTES);
    let mut window: Vec<S> = Vec::new();
    let mut index = vec![0; reduced.len()];
    for _ in 0..reduced.iter().product::<usize>() {
        window.clear();
        gather(block, &index, &mut window);
        reduce_window(reduction, &mut window).write(out);
        step(&mut index, &reduced);
    }
}

/// The elements that one element of the reduced block stands for, in row-major order.
fn gather<S: Sample>(block: Block<'_>, index: &[usize], window: &mut Vec<S>) {
    fn walk<S: Sample>(block: Block<'_>, index: &[usize], dimension: usize, offset: usize, window: &mut Vec<S>) {
        let Some((&size, &halved)) = block.shape.get(dimension).zip(block.halved.get(dimension)) else {
            return window.push(S::read(&block.elements[offset * S::BYTES..]));
        };
        let at = index[dimension];
        let range = if halved { 2 * at..size.min(2 * at + 2) } else { at..at + 1 };
        range.for_each(|at| walk(block, index, dimension + 1, offset * size + at, window));
    }
    walk(block, index, 0, 0, window);
}

fn reduce_window<S: Sample>(reduction: Reduction, window: &mut [S]) -> S {
    if reduction == Reduction::Mean {
        return S::mean(window);
    }
    window.sort_by(S::order);
    let last = window.len() - 1;
    match reduction {
        Reduction::Min => window[0],
        Reduction::Median => window[last / 2],
        Reduction::SecondHighest => window[last.saturating_sub(1)],
        Reduction::Max | Reduction::Mean => window[last],
    }
}

/// Goes to the next index in row-major order.
fn step(index: &mut [usize], shape: &[usize]) {
    for (at, size) in index.iter_mut().zip(shape).rev() {
        *at += 1;
        if *at < *size {
            return;
        }
        *at = 0;
    }
}
