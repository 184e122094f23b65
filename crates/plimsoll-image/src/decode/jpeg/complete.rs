//! Whether all of a JPEG's picture is in its file. A decoder that meets a marker where data should be fills in grey and does
//! not tell; so the entropy-coded data are walked once, without computing anything from them.
//! Never judges headers: what it does not know, the decoder does or refuses.

use super::bits::{Bits, Codes, Fault};

/// What the header of the frame says of one of its components.
#[derive(Copy, Clone)]
struct Component {
    id: u8,
    /// Blocks in a unit that all components share.
    across: u32,
    down: u32,
}

/// A frame, and for each component which coefficients of each block are not zero so far, a bit each.
struct Frame {
    width: u32,
    height: u32,
    progressive: bool,
    components: Vec<Component>,
    masks: Vec<Vec<u64>>,
    /// For each component, the coefficients whose last bit no scan has brought yet.
    missing: Vec<u64>,
}

#[derive(Default)]
struct Tables {
    dc: [Option<Codes>; 4],
    ac: [Option<Codes>; 4],
    restart_every: u32,
}

/// One scan's own parameters.
struct Scan {
    /// The place of each component in the frame, and its tables for the first and the other coefficients.
    parts: Vec<(usize, usize, usize)>,
    first: u32,
    last: u32,
    refines: bool,
    /// It brings the last bit.
    is_last: bool,
}

/// Walks all scans. Passes what it does not know.
pub(super) fn check(bytes: &[u8]) -> Result<(), Fault> {
    let mut tables = Tables::default();
    let mut frame: Option<Frame> = None;
    let mut rest = bytes.get(2..).unwrap_or_default();
    while let [0xff, marker, after @ ..] = rest {
        match marker {
            0xff => rest = &rest[1..],
            0x01 | 0xd0..=0xd8 => rest = after,
            0xd9 if frame.as_ref().is_some_and(Frame::lacks_scans) => return Err(Fault::Short),
            0xd9 => return Ok(()),
            _ => {
                let Some((segment, behind)) = segment(after) else { return Err(Fault::Short) };
                rest = behind;
                match marker {
                    0xc4 => tables.read(segment),
                    0xc0..=0xc2 => frame = Frame::read(segment, *marker == 0xc2),
                    // Arithmetic coding, lossless and hierarchical files: refused elsewhere.
                    0xc3 | 0xc5..=0xcf => return Ok(()),
                    0xdd => {
                        tables.restart_every =
                            segment.get(..2).map_or(0, |two| u32::from(two[0]) << 8 | u32::from(two[1]))
                    }
                    0xda => {
                        let Some(frame) = &mut frame else { return Ok(()) };
                        let Some(scan) = Scan::read(segment, frame) else { return Ok(()) };
                        let mut bits = Bits::of(behind);
                        scan.walk(frame, &tables, &mut bits)?;
                        scan.note(frame);
                        rest = bits.behind();
                    }
                    _ => {}
                }
            }
        }
    }
    Err(Fault::Short)
}

/// What a segment holds, and what is behind it.
fn segment(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let [high, low, ..] = bytes else { return None };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    (length >= 2 && length <= bytes.len()).then(|| (&bytes[2..length], &bytes[length..]))
}

impl Tables {
    fn read(&mut self, mut segment: &[u8]) {
        while let Some((&class, after)) = segment.split_first()
            && let Some((counts, after)) = after.split_first_chunk::<16>()
        {
            let total: usize = counts.iter().map(|count| usize::from(*count)).sum();
            let Some((symbols, behind)) = after.split_at_checked(total) else { return };
            let tables = if class >> 4 == 0 { &mut self.dc } else { &mut self.ac };
            tables[usize::from(class & 3)] = Some(Codes::new(counts, symbols));
            segment = behind;
        }
    }
}

impl Frame {
    fn read(segment: &[u8], progressive: bool) -> Option<Self> {
        let [_, h1, h0, w1, w0, count, rest @ ..] = segment else { return None };
        let (height, width) = (u32::from(*h1) << 8 | u32::from(*h0), u32::from(*w1) << 8 | u32::from(*w0));
        let parts = rest.as_chunks::<3>().0.iter().take(usize::from(*count));
        let component =
            |part: &[u8; 3]| Component { id: part[0], across: u32::from(part[1] >> 4), down: u32::from(part[1] & 15) };
        let components: Vec<Component> = parts.map(component).collect();
        let is_sound = |component: &Component| (1..=4).contains(&component.across) && (1..=4).contains(&component.down);
        if width == 0 || height == 0 || components.is_empty() || !components.iter().all(is_sound) {
            return None;
        }
        let missing = vec![u64::MAX; components.len()];
        let mut frame = Self { width, height, progressive, components, masks: Vec::new(), missing };
        if progressive {
            let (across, down) = frame.units();
            let blocks = |part: &Component| (across * part.across) as usize * (down * part.down) as usize;
            frame.masks = frame.components.iter().map(|part| vec![0; blocks(part)]).collect();
        }
        Some(frame)
    }

    /// Whether the file ends before every coefficient was brought to its last bit: whole scans are gone.
    fn lacks_scans(&self) -> bool {
        self.missing.iter().any(|missing| *missing != 0)
    }

    fn most(&self) -> (u32, u32) {
        let most = |side: fn(&Component) -> u32| self.components.iter().map(side).max().unwrap_or(1);
        (most(|part| part.across), most(|part| part.down))
    }

    /// Units of all components together, across and down.
    fn units(&self) -> (u32, u32) {
        let (across, down) = self.most();
        (self.width.div_ceil(8 * across), self.height.div_ceil(8 * down))
    }

    /// Blocks of one component that lie in the image, across and down.
    fn blocks(&self, at: usize) -> (u32, u32) {
        let (part, (across, down)) = (self.components[at], self.most());
        let side = |length: u32, own: u32, most: u32| (length * own).div_ceil(most).div_ceil(8);
        (side(self.width, part.across, across), side(self.height, part.down, down))
    }
}

impl Scan {
    fn read(segment: &[u8], frame: &Frame) -> Option<Self> {
        let (&count, rest) = segment.split_first()?;
        let (parts, rest) = rest.split_at_checked(2 * usize::from(count))?;
        let [first, last, exact, ..] = *rest else { return None };
        let place = |part: &[u8; 2]| {
            let at = frame.components.iter().position(|component| component.id == part[0])?;
            Some((at, usize::from(part[1] >> 4 & 3), usize::from(part[1] & 3)))
        };
        let parts: Vec<_> = parts.as_chunks::<2>().0.iter().map(place).collect::<Option<_>>()?;
        let is_sound = !parts.is_empty() && last < 64 && first <= last;
        let (first, last) = if frame.progressive { (first.into(), last.into()) } else { (0, 63) };
        let is_last = !frame.progressive || exact & 15 == 0;
        is_sound.then_some(Self { parts, first, last, refines: frame.progressive && exact >> 4 > 0, is_last })
    }

    /// What it has brought is missing no more.
    fn note(&self, frame: &mut Frame) {
        let brought = (self.first..=self.last).fold(0_u64, |bits, at| bits | 1 << at);
        for (at, ..) in self.parts.iter().filter(|_| self.is_last) {
            frame.missing[*at] &= !brought;
        }
    }

    fn walk(&self, frame: &mut Frame, tables: &Tables, bits: &mut Bits<'_>) -> Result<(), Fault> {
        let alone = self.parts.len() == 1;
        let (across, down) = if alone { frame.blocks(self.parts[0].0) } else { frame.units() };
        let row_blocks: Vec<u32> = frame.components.iter().map(|part| part.across * frame.units().0).collect();
        let mut run = 0;
        for unit in 0..across * down {
            if tables.restart_every > 0 && unit > 0 && unit % tables.restart_every == 0 {
                bits.restart()?;
                run = 0;
            }
            let (x, y) = (unit % across, unit / across);
            for &(at, dc, ac) in &self.parts {
                let part = if alone { Component { across: 1, down: 1, id: 0 } } else { frame.components[at] };
                for block in 0..part.across * part.down {
                    let (bx, by) = (x * part.across + block % part.across, y * part.down + block / part.across);
                    let place = by as usize * row_blocks[at] as usize + bx as usize;
                    let mut none = 0;
                    let mask = frame.masks.get_mut(at).and_then(|masks| masks.get_mut(place)).unwrap_or(&mut none);
                    self.block(
                        bits,
                        (tables.dc[dc].as_ref(), tables.ac[ac].as_ref()),
                        mask,
                        &mut run,
                        frame.progressive,
                    )?;
                }
            }
        }
        Ok(())
    }

    fn block(
        &self,
        bits: &mut Bits<'_>,
        (dc, ac): (Option<&Codes>, Option<&Codes>),
        mask: &mut u64,
        run: &mut u32,
        progressive: bool,
    ) -> Result<(), Fault> {
        if self.first == 0 {
            match self.refines {
                true => drop(bits.take(1)?),
                false => {
                    let length = bits.symbol(dc.ok_or(Fault::Nonsense)?)?;
                    bits.take(u32::from(length.min(16)))?;
                }
            }
        }
        if self.last == 0 {
            return Ok(());
        }
        let ac = ac.ok_or(Fault::Nonsense)?;
        match (progressive, self.refines) {
            (false, _) => sequential(bits, ac),
            (true, false) => self.first_pass(bits, ac, mask, run),
            (true, true) => self.refining_pass(bits, ac, mask, run),
        }
    }

    fn first_pass(&self, bits: &mut Bits<'_>, ac: &Codes, mask: &mut u64, run: &mut u32) -> Result<(), Fault> {
        if *run > 0 {
            *run -= 1;
            return Ok(());
        }
        let mut at = self.first.max(1);
        while at <= self.last {
            let (zeros, length) = halves(bits.symbol(ac)?);
            match (zeros, length) {
                (15, 0) => at += 16,
                (zeros, 0) => {
                    *run = (1 << zeros) - 1 + bits.take(zeros)?;
                    return Ok(());
                }
                (zeros, length) => {
                    at += zeros;
                    bits.take(length)?;
                    *mask |= 1_u64.checked_shl(at).ok_or(Fault::Nonsense)?;
                    at += 1;
                }
            }
        }
        Ok(())
    }

    fn refining_pass(&self, bits: &mut Bits<'_>, ac: &Codes, mask: &mut u64, run: &mut u32) -> Result<(), Fault> {
        let mut at = self.first.max(1);
        if *run == 0 {
            while at <= self.last {
                let (mut zeros, length) = halves(bits.symbol(ac)?);
                match (zeros, length) {
                    (15, 0) => {}
                    (zeros, 0) => {
                        *run = (1 << zeros) + bits.take(zeros)?;
                        break;
                    }
                    (_, length) => drop(bits.take(length)?),
                }
                while at <= self.last {
                    if *mask >> at & 1 == 1 {
                        bits.take(1)?;
                    } else if zeros == 0 {
                        break;
                    } else {
                        zeros -= 1;
                    }
                    at += 1;
                }
                if length > 0 && at <= self.last {
                    *mask |= 1 << at;
                }
                at += 1;
            }
        }
        if *run > 0 {
            while at <= self.last {
                bits.take((*mask >> at & 1) as u32)?;
                at += 1;
            }
            *run -= 1;
        }
        Ok(())
    }
}

fn sequential(bits: &mut Bits<'_>, ac: &Codes) -> Result<(), Fault> {
    let mut at = 1;
    while at < 64 {
        match halves(bits.symbol(ac)?) {
            (15, 0) => at += 16,
            (_, 0) => return Ok(()),
            (zeros, length) => {
                bits.take(length)?;
                at += zeros + 1;
            }
        }
    }
    Ok(())
}

fn halves(symbol: u8) -> (u32, u32) {
    (u32::from(symbol >> 4), u32::from(symbol & 15))
}
