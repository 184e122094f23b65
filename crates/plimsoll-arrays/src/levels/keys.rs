//! Elements as numbers that are ordered as they are, and which of a window is wanted: the least, the greatest, the middle,
//! the greatest but one.
//! Invariant: the order is that of `sample.rs`: NaN above every number, -0 below 0.

use std::marker::PhantomData;

use super::rows::Windowed;
use crate::data_type::DataType;
use crate::fill::canonical_nan;

/// A type whose elements have a place in an order.
pub(super) trait Key<const W: usize> {
    type Place: Copy + Ord;
    const LOWEST: Self::Place;
    const HIGHEST: Self::Place;
    fn place(element: [u8; W]) -> Self::Place;
    fn element(place: Self::Place) -> [u8; W];
}

macro_rules! integer {
    ($($type:ty, $width:literal;)*) => { $(
        impl Key<$width> for $type {
            type Place = Self;
            const LOWEST: Self = Self::MIN;
            const HIGHEST: Self = Self::MAX;

            fn place(element: [u8; $width]) -> Self {
                Self::from_le_bytes(element)
            }

            fn element(place: Self) -> [u8; $width] {
                place.to_le_bytes()
            }
        }
    )* };
}

integer!(u8, 1; u16, 2; i16, 2; u32, 4; i32, 4;);

/// The bits of a float as a signed number: those below zero turned round, every NaN the highest.
macro_rules! float {
    ($type:ty, $data_type:expr, $bits:ty, $place:ty, $width:literal) => {
        impl Key<$width> for $type {
            type Place = $place;
            const LOWEST: $place = <$place>::MIN;
            const HIGHEST: $place = <$place>::MAX;

            fn place(element: [u8; $width]) -> $place {
                let bits = <$place>::from_le_bytes(element);
                let is_nan = Self::from_le_bytes(element).is_nan();
                let turned = bits ^ (((bits >> ($width * 8 - 1)) as $bits) >> 1) as $place;
                if is_nan { <$place>::MAX } else { turned }
            }

            fn element(place: $place) -> [u8; $width] {
                let bits = place ^ (((place >> ($width * 8 - 1)) as $bits) >> 1) as $place;
                let nan = canonical_nan($data_type) as $place;
                (if place == <$place>::MAX { nan } else { bits }).to_le_bytes()
            }
        }
    };
}

float!(f32, DataType::F32, u32, i32, 4);
float!(f64, DataType::F64, u64, i64, 8);

/// The least.
pub(super) struct Least<T>(PhantomData<T>);
/// The greatest.
pub(super) struct Greatest<T>(PhantomData<T>);
/// The greatest but one; the only one of a window of one.
pub(super) struct Second<T>(PhantomData<T>);
/// The lower of the two in the middle, of windows of at most twice `N`.
pub(super) struct Middle<T, const N: usize>(PhantomData<T>);

impl<T: Key<W>, const W: usize> Windowed<W> for Least<T> {
    type Sum = T::Place;
    const NOTHING: T::Place = T::HIGHEST;

    fn add(least: T::Place, element: [u8; W]) -> T::Place {
        least.min(T::place(element))
    }

    fn reduced(least: T::Place, _: u32) -> [u8; W] {
        T::element(least)
    }
}

impl<T: Key<W>, const W: usize> Windowed<W> for Greatest<T> {
    type Sum = T::Place;
    const NOTHING: T::Place = T::LOWEST;

    fn add(greatest: T::Place, element: [u8; W]) -> T::Place {
        greatest.max(T::place(element))
    }

    fn reduced(greatest: T::Place, _: u32) -> [u8; W] {
        T::element(greatest)
    }
}

impl<T: Key<W>, const W: usize> Windowed<W> for Second<T> {
    type Sum = [T::Place; 2];
    const NOTHING: [T::Place; 2] = [T::LOWEST; 2];

    fn add([first, second]: [T::Place; 2], element: [u8; W]) -> [T::Place; 2] {
        let place = T::place(element);
        [first.max(place), second.max(first.min(place))]
    }

    fn reduced([first, second]: [T::Place; 2], log_count: u32) -> [u8; W] {
        T::element(if log_count == 0 { first } else { second })
    }
}

impl<T: Key<W>, const W: usize, const N: usize> Windowed<W> for Middle<T, N> {
    /// The least `N`, in order.
    type Sum = [T::Place; N];
    const NOTHING: [T::Place; N] = [T::HIGHEST; N];

    fn add(mut least: [T::Place; N], element: [u8; W]) -> [T::Place; N] {
        let mut place = T::place(element);
        for kept in &mut least {
            (*kept, place) = ((*kept).min(place), (*kept).max(place));
        }
        least
    }

    fn reduced(least: [T::Place; N], log_count: u32) -> [u8; W] {
        T::element(least[((1 << log_count) / 2_usize).saturating_sub(1)])
    }
}
