//! Which pictures are in the page, and how large. Owns the limits that keep a page small enough to send to somebody.
//! Invariant: a page has pictures of at most [`ROWS_WITH_PICTURES_MAX`] rows, and about as many pixels of each kind as its [`Sides`] say.

use super::heat::{self, HeatScale};
use super::{HeatMap, Picture, Report, data_uri, shrink};

/// Rows beyond this many are shown without pictures.
pub(crate) const ROWS_WITH_PICTURES_MAX: usize = 400;

/// The longer side of a picture.
pub(crate) const PICTURE_SIDE: Sides = Sides { max: 640, min: 160, pixels: 8 << 20 };

/// The longer side of a heat map, which shows single pixels when it is enlarged.
pub(crate) const HEAT_MAP_SIDE: Sides = Sides { max: 768, min: 160, pixels: 7_700_000 };

/// The sides of a part that is shown pixel by pixel.
pub(crate) const DETAIL_SIDE: Sides = Sides { max: 320, min: 96, pixels: 4 << 20 };

pub(crate) struct Sides {
    pub(crate) max: u32,
    min: u32,
    /// Of all together: of more, each is made smaller, down to the least side.
    pixels: usize,
}

impl Sides {
    pub(crate) fn among(&self, count: usize) -> u32 {
        let share = (self.pixels / count.max(1)) as f64;
        (share.sqrt() as u32).clamp(self.min, self.max)
    }
}

/// The pictures of a report, made small.
pub(crate) struct Gallery<'a> {
    report: &'a Report,
    picture_side: u32,
    maps: Vec<Option<HeatMap>>,
    pub(crate) scale: HeatScale,
}

impl<'a> Gallery<'a> {
    pub(crate) fn of(report: &'a Report) -> Self {
        let rows = || report.rows.iter().take(ROWS_WITH_PICTURES_MAX);
        let whole_map = |map: &&HeatMap| is_whole(map.width, map.height, map.values.len(), 1);
        let map_side = HEAT_MAP_SIDE.among(rows().filter(|row| row.heat_map.is_some()).count());
        let small = |map| shrink::heat_map(map, map_side);
        let maps: Vec<Option<HeatMap>> = rows().map(|row| row.heat_map.as_ref().filter(whole_map).map(small)).collect();
        let scale = HeatScale::of(maps.iter().flatten());
        let pictures = rows().filter(|row| row.picture.is_some()).count() + report.references.len();
        Self { report, picture_side: PICTURE_SIDE.among(pictures), maps, scale }
    }

    pub(crate) fn has_maps(&self) -> bool {
        self.maps.iter().any(Option::is_some)
    }

    pub(crate) fn has_pictures(&self) -> bool {
        self.has_maps() || self.report.rows.iter().any(|row| row.picture.as_ref().is_some_and(is_shown))
    }

    /// Rows that have pictures which the page leaves out.
    pub(crate) fn left_out(&self) -> usize {
        let has_any = |row: &&super::ReportRow| row.picture.is_some() || row.heat_map.is_some();
        self.report.rows.iter().skip(ROWS_WITH_PICTURES_MAX).filter(has_any).count()
    }

    /// The picture of a row, as an address to put into an `img`.
    pub(crate) fn picture(&self, row: usize) -> Option<String> {
        let is_within = row < ROWS_WITH_PICTURES_MAX;
        self.report.rows[row].picture.as_ref().filter(|picture| is_within && is_shown(picture)).map(|it| self.uri(it))
    }

    /// The picture of a reference.
    pub(crate) fn reference(&self, reference: usize) -> Option<String> {
        let picture = self.report.references.get(reference)?.picture.as_ref();
        picture.filter(|picture| is_shown(picture)).map(|picture| self.uri(picture))
    }

    /// The heat map of a row as a picture.
    pub(crate) fn heat_map(&self, row: usize) -> Option<String> {
        self.maps.get(row)?.as_ref().map(|map| self.scale.picture(map))
    }

    /// The part of a row that is shown pixel by pixel, of the reference and of the file, and how many pixels wide and high.
    pub(crate) fn detail(&self, row: usize) -> Option<([String; 2], (u32, u32))> {
        let detail = self.report.rows[row].detail.as_ref().filter(|_| row < ROWS_WITH_PICTURES_MAX)?;
        let (file, reference) = (&detail.picture, &detail.reference);
        let is_alike = (file.width, file.height) == (reference.width, reference.height);
        let are_shown = is_alike && is_shown(file) && is_shown(reference);
        are_shown.then(|| ([reference, file].map(data_uri::detail), (file.width, file.height)))
    }

    /// The mean and the largest distance of a row, over all of its map as it was given.
    pub(crate) fn distances(&self, row: usize) -> Option<(f64, f64)> {
        self.maps.get(row)?.as_ref()?;
        heat::figures(self.report.rows[row].heat_map.as_ref()?)
    }

    fn uri(&self, picture: &Picture) -> String {
        data_uri::picture(&shrink::picture(picture, self.picture_side))
    }
}

fn is_shown(picture: &Picture) -> bool {
    is_whole(picture.width, picture.height, picture.rgb.len(), 3)
}

fn is_whole(width: u32, height: u32, length: usize, channels: u64) -> bool {
    let wanted = u64::from(width) * u64::from(height);
    wanted > 0 && wanted.checked_mul(channels) == Some(length as u64)
}

#[cfg(test)]
mod tests {
    use super::super::{Detail, ReportRow};
    use super::*;

    fn row() -> ReportRow {
        let picture = Picture { width: 2, height: 1, rgb: vec![9; 6] };
        let heat_map = HeatMap { width: 2, height: 1, values: vec![0.0, 1.0] };
        ReportRow { picture: Some(picture), heat_map: Some(heat_map), ..ReportRow::default() }
    }

    #[test]
    fn rows_beyond_the_limit_have_no_pictures() {
        let report = Report { rows: vec![row(); ROWS_WITH_PICTURES_MAX + 3], ..Report::default() };
        let gallery = Gallery::of(&report);
        let last = ROWS_WITH_PICTURES_MAX - 1;
        assert!(gallery.picture(last).is_some() && gallery.heat_map(last).is_some());
        assert!(gallery.picture(last + 1).is_none() && gallery.heat_map(last + 1).is_none());
        assert_eq!(gallery.left_out(), 3);
    }

    #[test]
    fn pictures_of_another_length_are_left_out() {
        let mut broken = row();
        broken.picture = Some(Picture { width: 2, height: 2, rgb: vec![9; 6] });
        broken.heat_map = Some(HeatMap { width: 0, height: 0, values: vec![] });
        let report = Report { rows: vec![broken], ..Report::default() };
        let gallery = Gallery::of(&report);
        assert!(gallery.picture(0).is_none() && gallery.heat_map(0).is_none() && !gallery.has_pictures());
    }

    #[test]
    fn details_of_two_sizes_are_left_out() {
        let part = |side: u32| Picture { width: side, height: 1, rgb: vec![7; 3 * side as usize] };
        let detail =
            |file, reference| Some(Detail { picture: part(file), reference: part(reference), ..Detail::default() });
        let rows = [detail(2, 2), detail(2, 3), None].map(|detail| ReportRow { detail, ..row() });
        let report = Report { rows: rows.to_vec(), ..Report::default() };
        let gallery = Gallery::of(&report);
        assert_eq!([0, 1, 2].map(|row| gallery.detail(row).map(|(_, size)| size)), [Some((2, 1)), None, None]);
    }

    #[test]
    fn many_pictures_are_small_ones() {
        assert_eq!([1, 20, 400, 100_000].map(|count| HEAT_MAP_SIDE.among(count)), [768, 620, 160, 160]);
        assert_eq!([1, 160, 400].map(|count| PICTURE_SIDE.among(count)), [640, 228, 160]);
        assert_eq!([2, 200, 800].map(|count| DETAIL_SIDE.among(count)), [320, 144, 96]);
    }

    #[test]
    fn distances_are_those_of_the_whole_map() {
        let report = Report { rows: vec![row()], ..Report::default() };
        assert_eq!(Gallery::of(&report).distances(0), Some((0.5, 1.0)));
    }
}
