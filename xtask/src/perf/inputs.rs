//! Files that rows read: made up from fixed numbers, once, and used by both sides.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::builds::Build;
use crate::steps;

/// What a row reads.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Nothing,
    /// A file of the repository.
    Kept(&'static str),
    /// So many MiB of words, most of them rare.
    Text(usize),
    /// So many MiB of a slow wave with noise, as 32-bit floats.
    Numeric(usize),
    /// So many MiB that nothing can pack.
    Noise(usize),
    /// The text, packed in this format.
    Packed(usize, &'static str),
    /// A reference of 512 × 512 and so many variants.
    Pictures(usize),
    /// So many frames of 640 × 360.
    Film(usize),
}

const PICTURE_SIDE: usize = 512;
const FILM: (usize, usize) = (640, 360);

impl Input {
    /// What a run of it does: megabytes, pictures or frames.
    pub(crate) fn units(self) -> f64 {
        match self {
            Self::Nothing | Self::Kept(_) => 1.0,
            Self::Text(mib) | Self::Numeric(mib) | Self::Noise(mib) | Self::Packed(mib, _) => mib as f64 * 1.048_576,
            Self::Pictures(count) | Self::Film(count) => count as f64,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Nothing => "nothing".to_owned(),
            Self::Kept(path) => path.to_owned(),
            Self::Text(mib) => format!("text-{mib}"),
            Self::Numeric(mib) => format!("numeric-{mib}"),
            Self::Noise(mib) => format!("noise-{mib}"),
            Self::Packed(mib, format) => format!("text-{mib}.{format}"),
            Self::Pictures(count) => format!("pictures-{count}"),
            Self::Film(count) => format!("film-{count}.y4m"),
        }
    }

    /// Where it is; made if it is not there yet.
    pub(crate) fn ensure(self, folder: &Path, packer: &Build) -> Result<PathBuf, String> {
        if let Self::Kept(path) = self {
            return Ok(steps::root().join(path));
        }
        let path = folder.join(self.name());
        if !path.exists() {
            // Under its name only when it is whole.
            let draft = folder.join("draft");
            self.make(folder, &draft, packer)?;
            fs::rename(&draft, &path).map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        }
        Ok(path)
    }

    fn make(self, folder: &Path, draft: &Path, packer: &Build) -> Result<(), String> {
        let told = |error: std::io::Error| format!("cannot make {}: {error}", draft.display());
        let write = |make: fn(&mut Dice, &mut Vec<u8>), mib: usize| fs::write(draft, bytes(make, mib << 20));
        match self {
            Self::Nothing | Self::Kept(_) => File::create(draft).map(|_| ()).map_err(told),
            Self::Text(mib) => write(word, mib).map_err(told),
            Self::Numeric(mib) => write(sample, mib).map_err(told),
            Self::Noise(mib) => write(|dice, out| out.extend(dice.roll().to_le_bytes()), mib).map_err(told),
            Self::Packed(mib, format) => {
                let text = Self::Text(mib).ensure(folder, packer)?;
                pack(packer, format, &text, draft)
            }
            Self::Pictures(count) => pictures(draft, count).map_err(told),
            Self::Film(count) => film(draft, count).map_err(told),
        }
    }
}

fn pack(packer: &Build, format: &str, text: &Path, to: &Path) -> Result<(), String> {
    let mut command = Command::new(&packer.cli);
    command.args(["pack", "-q", "--force", "-f", format, "-o"]).args([to, text]);
    let ended = command.status().map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if ended.success() { Ok(()) } else { Err(format!("{command:?} failed; run it by hand")) }
}

fn bytes(make: fn(&mut Dice, &mut Vec<u8>), size: usize) -> Vec<u8> {
    let (mut dice, mut bytes) = (Dice(0x9e37_79b9_7f4a_7c15), Vec::with_capacity(size + 64));
    while bytes.len() < size {
        make(&mut dice, &mut bytes);
    }
    bytes.truncate(size);
    bytes
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 ^ self.0 >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }
}

fn word(dice: &mut Dice, out: &mut Vec<u8>) {
    let rank = (dice.roll() % 4_000) * (dice.roll() % 4_000) / 4_000;
    let mut letters = Dice(rank * 2 + 1);
    out.extend((0..2 + letters.roll() % 7).map(|_| b"etaoinshrdlu"[(letters.roll() % 12) as usize]));
    out.push(if dice.roll().is_multiple_of(12) { b'\n' } else { b' ' });
}

fn sample(dice: &mut Dice, out: &mut Vec<u8>) {
    let at = out.len() as f32 / 4.0;
    let noise = (dice.roll() % 1_000) as f32 / 1e5;
    out.extend(((at / 500.0).sin() * 20.0 + noise).to_le_bytes());
}

fn pictures(folder: &Path, count: usize) -> std::io::Result<()> {
    fs::create_dir_all(folder.join("variants"))?;
    picture(&folder.join("reference.ppm"), 0)?;
    (1..=count).try_for_each(|noise| picture(&folder.join(format!("variants/{noise:03}.ppm")), noise as u64))
}

fn picture(path: &Path, noise: u64) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    write!(file, "P6\n{PICTURE_SIDE} {PICTURE_SIDE}\n255\n")?;
    let mut dice = Dice(noise);
    for at in 0..PICTURE_SIDE * PICTURE_SIDE {
        let (x, y) = (at % PICTURE_SIDE, at / PICTURE_SIDE);
        let pixel = [x / 2, y / 2, (x * y / 300) % 256];
        let shift = if noise == 0 { 0 } else { dice.roll() % (2 + noise / 4) };
        file.write_all(&pixel.map(|value| (value as u64 + shift).min(255) as u8))?;
    }
    file.flush()
}

fn film(path: &Path, frames: usize) -> std::io::Result<()> {
    let (width, height) = FILM;
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "YUV4MPEG2 W{width} H{height} F25:1 Ip A1:1 C420jpeg")?;
    for frame in 0..frames {
        writeln!(file, "FRAME")?;
        let luma = |at: usize| ((at % width + frame * 3) ^ (at / width)) as u8;
        file.write_all(&(0..width * height).map(luma).collect::<Vec<u8>>())?;
        file.write_all(&vec![(100 + frame % 50) as u8; width * height / 2])?;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_same_every_time_and_as_many_as_asked_for() {
        assert_eq!(bytes(word, 10_000), bytes(word, 10_000));
        assert_eq!(bytes(sample, 10_001).len(), 10_001);
    }

    #[test]
    fn a_film_is_as_long_as_its_header_says() {
        let path = std::env::temp_dir().join(format!("plimsoll-perf-film-{}", std::process::id()));
        film(&path, 3).unwrap();
        let length = fs::metadata(&path).unwrap().len();
        fs::remove_file(&path).unwrap();
        assert_eq!(length, 43 + 3 * (6 + 640 * 360 * 3 / 2));
    }
}
