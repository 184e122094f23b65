//! A heat map as a file of its own: a PNG in which every pixel is one of the image, on a scale that is the same in every
//! file, so that files of two runs can be laid beside each other. Whoever opens one sees all of it or what was there before.

use std::io;
use std::path::Path;

use super::heat::{self, HeatScale};
use super::{HeatMap, ReportError, replace};

/// Writes a heat map as a PNG of indexed colours. It says in itself what they mean.
pub fn write_heat_map(map: &HeatMap, what: &str, path: &Path) -> Result<(), ReportError> {
    let failed = |source| ReportError { path: path.to_owned(), source };
    let file = encoded(map, what).map_err(|error| failed(io::Error::other(error)))?;
    replace(path, &file).map_err(failed)
}

fn encoded(map: &HeatMap, what: &str) -> Result<Vec<u8>, png::EncodingError> {
    let (scale, mut file) = (HeatScale::OF_FILES, Vec::new());
    let mut encoder = png::Encoder::new(&mut file, map.width, map.height);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(heat::palette());
    encoder.set_compression(png::Compression::Fast);
    encoder.add_itxt_chunk("Description".to_owned(), scale.in_words(what))?;
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&scale.codes(map))?;
    writer.finish()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pixel_is_there_and_the_colours_say_what_they_mean() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map.png");
        std::fs::write(&path, "before").unwrap();
        let map = HeatMap { width: 3, height: 1, values: vec![0.0, 1.0, 99.0] };
        write_heat_map(&map, "Butteraugli distance", &path).unwrap();
        let mut reader =
            png::Decoder::new(io::BufReader::new(std::fs::File::open(&path).unwrap())).read_info().unwrap();
        let text = reader.info().utf8_text[0].get_text().unwrap();
        assert!(text.contains("Butteraugli distance") && text.contains('4'), "{text}");
        let mut codes = vec![0; 3];
        reader.next_frame(&mut codes).unwrap();
        assert_eq!(codes, [0, 127, 254], "the square root of a quarter is a half");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn where_nothing_can_be_written_it_says_so() {
        let map = HeatMap { width: 1, height: 1, values: vec![0.0] };
        let error = write_heat_map(&map, "", Path::new("/nowhere/at/all.png")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/at/all.png"), "{error}");
        assert!(write_heat_map(&HeatMap::default(), "", Path::new("empty.png")).is_err(), "no pixels");
    }
}
