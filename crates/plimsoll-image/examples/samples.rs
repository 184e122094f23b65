//! Draws the reference of `samples/`: a harbour at dusk, a ship loaded to its line.
//!
//! `cargo run --release -p plimsoll-image --example samples -- samples/harbour.png`
//!
//! Everything is a formula of the position, so that the picture is the same each time. It has what sets codecs apart: slow
//! gradients (sky), fine texture (corrugated boxes, stone), hard thin edges (rigging, rails, lattice), saturated colour next
//! to grey, and noise (water).

use std::path::Path;

use image::{Rgb, RgbImage};

const WIDTH: u32 = 768;
const HEIGHT: u32 = 512;
/// Samples for each pixel, in each direction.
const FINE: u32 = 4;

/// Where sea and sky meet.
const HORIZON: f64 = 292.0;
/// Where the ship floats.
const WATERLINE: f64 = 364.0;
/// The upper edge of the quay in front.
const QUAY: f64 = 458.0;
const SUN: (f64, f64) = (168.0, 276.0);

/// Light: red, green, blue; 1 is the white of a page.
type Light = [f64; 3];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("where to? give the path of a PNG file")?;
    let picture = RgbImage::from_fn(WIDTH, HEIGHT, |x, y| Rgb(pixel(x, y).map(coded)));
    picture.save(Path::new(&path))?;
    Ok(())
}

/// The mean light of a pixel.
fn pixel(x: u32, y: u32) -> Light {
    let mut sum = [0.0; 3];
    for at in 0..FINE * FINE {
        let offset = |step: u32| (f64::from(step) + 0.5) / f64::from(FINE);
        let light = scene(f64::from(x) + offset(at % FINE), f64::from(y) + offset(at / FINE));
        sum.iter_mut().zip(light).for_each(|(sum, light)| *sum += light);
    }
    sum.map(|sum| sum / f64::from(FINE * FINE))
}

fn scene(x: f64, y: f64) -> Light {
    let front = quay(x, y).or_else(|| rope(x, y));
    let front = front.or_else(|| if y < WATERLINE { ship(x, y) } else { None });
    front.unwrap_or_else(|| if y < HORIZON { background(x, y) } else { water(x, y) })
}

fn background(x: f64, y: f64) -> Light {
    lighthouse(x, y).or_else(|| cranes(x, y)).or_else(|| town(x, y)).unwrap_or_else(|| {
        let sky = birds(x, y).unwrap_or_else(|| sky(x, y));
        add(sky, scale([1.0, 0.78, 0.42], 0.9 * glow(x, y, LAMP, 5.0) + 0.16 * beam(x, y)))
    })
}

// Sky -------------------------------------------------------------------------------------------------------------------

fn sky(x: f64, y: f64) -> Light {
    const STOPS: [(f64, Light); 6] = [
        (0.0, [0.012, 0.022, 0.085]),
        (0.28, [0.040, 0.050, 0.190]),
        (0.52, [0.150, 0.090, 0.270]),
        (0.72, [0.480, 0.170, 0.230]),
        (0.88, [0.950, 0.380, 0.170]),
        (1.0, [1.000, 0.620, 0.260]),
    ];
    let height = (y / HORIZON).clamp(0.0, 1.0);
    let toward_sun = (-((x - SUN.0) / 420.0).powi(2)).exp();
    let base = gradient(&STOPS, (height * (0.86 + 0.16 * toward_sun)).min(1.0));
    let base = scale(base, 0.62 + 0.42 * toward_sun);
    let halo = glow(x, y, SUN, 60.0) * 0.55 + glow(x, y, SUN, 20.0) * 0.6;
    let disc = 1.0 - step(15.0, 16.0, distance(x, y, SUN));
    let lit = add(add(base, scale([1.0, 0.55, 0.20], halo)), scale([1.0, 0.85, 0.5], disc));
    add(clouds(lit, x, y), scale([0.8, 0.85, 1.0], stars(x, y)))
}

/// Streaks, lit from below where the sun is.
fn clouds(behind: Light, x: f64, y: f64) -> Light {
    let stretch = 1.0 + (HORIZON - y) / 90.0;
    let density = turbulence(x / (95.0 * stretch) + 3.0, y / (17.0 * stretch) + 11.0, 6);
    let cover = step(0.50, 0.74, density) * step(20.0, 110.0, y) * (1.0 - step(262.0, 290.0, y));
    let under = turbulence(x / (95.0 * stretch) + 3.0, (y + 7.0) / (17.0 * stretch) + 11.0, 6);
    let lit = step(-0.02, 0.12, density - under);
    let warm = (-((x - SUN.0) / 330.0).powi(2)).exp();
    let shade = mix([0.085, 0.060, 0.150], [0.30, 0.12, 0.17], warm);
    let edge = mix([0.46, 0.19, 0.27], [1.0, 0.50, 0.22], warm);
    mix(behind, mix(shade, edge, lit), cover * 0.85)
}

fn stars(x: f64, y: f64) -> f64 {
    let (column, row) = ((x / 9.0).floor(), (y / 9.0).floor());
    let centre = ((column + 0.2 + 0.6 * hash(column, row, 1)) * 9.0, (row + 0.2 + 0.6 * hash(column, row, 2)) * 9.0);
    let bright = hash(column, row, 3);
    let shown = if bright > 0.90 { (bright - 0.90) * 9.0 } else { 0.0 };
    shown * (1.0 - step(0.4, 0.9, distance(x, y, centre))) * (1.0 - step(40.0, 150.0, y))
}

fn birds(x: f64, y: f64) -> Option<Light> {
    const BIRDS: [(f64, f64, f64); 5] =
        [(332.0, 118.0, 8.0), (352.0, 130.0, 6.0), (370.0, 112.0, 7.0), (310.0, 140.0, 5.0), (396.0, 126.0, 5.0)];
    let inside = BIRDS.iter().any(|&(centre, height, span)| {
        let across = (x - centre).abs() / span;
        let wing = height - span * 0.42 * (across * std::f64::consts::PI * 0.8).sin().max(0.0) + across * span * 0.25;
        across < 1.0 && (y - wing).abs() < 0.9 * (1.15 - across)
    });
    inside.then_some([0.02, 0.02, 0.05])
}

// Shore -----------------------------------------------------------------------------------------------------------------

const LAMP: (f64, f64) = (704.0, 190.0);

fn ridge(x: f64, seed: f64, height: f64) -> f64 {
    HORIZON - height * (0.25 + turbulence(x / 150.0 + seed, seed * 3.7, 5))
}

fn town(x: f64, y: f64) -> Option<Light> {
    let near = ridge(x, 7.3, 26.0) - 26.0 * step(560.0, 720.0, x);
    let block = (x / 7.0).floor();
    let roof = HORIZON - 4.0 - 13.0 * hash(block, 5.0, 9) * step(230.0, 330.0, x);
    if y > near.min(roof) {
        let (column, row) = ((x / 3.5).floor(), (y / 4.0).floor());
        let (inside_x, inside_y) = (x / 3.5 - column, y / 4.0 - row);
        let window = (0.3..0.75).contains(&inside_x) && (0.3..0.7).contains(&inside_y);
        if window && y > near.min(roof) + 2.0 && hash(column, row, 4) > 0.84 {
            let warm = hash(column, row, 6);
            return Some(mix([1.0, 0.62, 0.22], [0.75, 0.85, 1.0], step(0.8, 0.9, warm)));
        }
        return Some(scale([0.040, 0.032, 0.070], 0.8 + 0.4 * turbulence(x / 5.0, y / 5.0, 3)));
    }
    let far = ridge(x, 2.1, 74.0) + 24.0 * step(150.0, 20.0, (x - SUN.0).abs());
    let haze = (-((x - SUN.0) / 260.0).powi(2)).exp();
    (y > far).then(|| mix([0.105, 0.070, 0.165], [0.42, 0.17, 0.16], haze))
}

fn cranes(x: f64, y: f64) -> Option<Light> {
    const DARK: Light = [0.030, 0.022, 0.045];
    let crane = |foot: f64, size: f64| {
        let (x, y) = ((x - foot) / size, (y - HORIZON) / size);
        let legs = [(-9.0, -6.0), (9.0, 6.0)].iter().any(|&(low, high)| segment(x, y, (low, 0.0), (high, -62.0), 0.9));
        let frame = segment(x, y, (-8.0, -22.0), (8.0, -22.0), 0.7) || segment(x, y, (-7.0, -44.0), (7.0, -44.0), 0.7);
        let braces = segment(x, y, (-8.5, -2.0), (7.5, -44.0), 0.45) || segment(x, y, (8.5, -2.0), (-7.5, -44.0), 0.45);
        let boom = (-30.0..78.0).contains(&x) && lattice(x, y + 65.0, 6.0, 4.0, 0.40);
        let tower = segment(x, y, (-2.0, -62.0), (0.0, -92.0), 0.9) || segment(x, y, (6.0, -62.0), (0.0, -92.0), 0.6);
        let stays = [(76.0, -67.0), (40.0, -67.0), (-29.0, -67.0)];
        let stays = stays.iter().any(|&end| segment(x, y, (0.0, -92.0), end, 0.35));
        let load = segment(x, y, (52.0, -62.0), (52.0, -34.0), 0.3) || boxed(x, y, (44.0, -34.0), (60.0, -28.0));
        legs || frame || braces || boom || tower || stays || load
    };
    (crane(36.0, 1.30) || crane(78.0, 1.0)).then_some(DARK)
}

fn lighthouse(x: f64, y: f64) -> Option<Light> {
    let across = x - LAMP.0;
    let foot = HORIZON - 20.0 + 5.0 * turbulence(x / 13.0, 4.0, 4) + (across / 34.0).powi(2) * 12.0;
    if y > foot && across.abs() < 62.0 {
        let grain = turbulence(x / 4.0, y / 3.0, 4);
        return Some(scale(mix([0.10, 0.075, 0.10], [0.30, 0.16, 0.15], step(10.0, -50.0, across)), 0.4 + 0.9 * grain));
    }
    let round = |half: f64| 0.30 + 0.70 * (1.0 - ((across + half * 0.45) / (half * 1.5)).powi(2)).max(0.0);
    if y > 200.0 && across.abs() < 7.0 + (y - 200.0) * 0.045 {
        let half = 7.0 + (y - 200.0) * 0.045;
        let band = ((y - 200.0) / 16.0).floor() as i64 % 2 == 0;
        let paint = if band { [0.62, 0.50, 0.50] } else { [0.46, 0.045, 0.050] };
        return Some(scale(paint, round(half)));
    }
    if (196.0..200.0).contains(&y) && across.abs() < 10.0 {
        return Some([0.05, 0.045, 0.06]);
    }
    if (183.0..196.0).contains(&y) && across.abs() < 5.5 {
        let bar = across.rem_euclid(3.6) < 0.7;
        return Some(if bar { [0.06, 0.05, 0.06] } else { [1.0, 0.86, 0.50] });
    }
    let cap = (y - 176.0) * 1.0;
    ((176.0..183.0).contains(&y) && across.abs() < cap).then(|| scale([0.42, 0.05, 0.05], round(6.0)))
}

fn beam(x: f64, y: f64) -> f64 {
    let (dx, dy) = (LAMP.0 - x, y - LAMP.1);
    let along = dx.max(1.0);
    let spread = ((dy + along * 0.17) / (2.0 + along * 0.060)).powi(2);
    if dx > 0.0 { (-spread).exp() * (-along / 230.0).exp() } else { 0.0 }
}

// Ship ------------------------------------------------------------------------------------------------------------------

const STERN: f64 = 178.0;
const BOW: f64 = 652.0;

/// The upper edge of the hull: it rises toward the bow.
fn deck(x: f64) -> f64 {
    306.0 - 15.0 * step(0.62, 1.0, (x - STERN) / (BOW - STERN)) - 3.0 * step(0.12, 0.0, (x - STERN) / (BOW - STERN))
}

fn ship(x: f64, y: f64) -> Option<Light> {
    hull(x, y).or_else(|| house(x, y)).or_else(|| boxes(x, y)).or_else(|| rigging(x, y))
}

fn hull(x: f64, y: f64) -> Option<Light> {
    let down = ((y - deck(x)) / (WATERLINE - deck(x))).clamp(0.0, 1.0);
    let bow = BOW - 42.0 * down.powf(0.8) + if y > 350.0 { (y - 350.0) * 0.8 } else { 0.0 };
    let stern = STERN + 16.0 * down.powi(3);
    if y < deck(x) || x < stern || x > bow {
        return None;
    }
    if let Some(light) = marks(x, y) {
        return Some(light);
    }
    let worn = turbulence(x / 23.0, y / 9.0, 5);
    let streaks = turbulence(x / 2.2, y / 40.0 + 5.0, 3) * step(310.0, 340.0, y);
    let seam = (y - deck(x)).rem_euclid(12.0) < 0.8 || (x + 9.0 * ((y / 12.0).floor() % 2.0)).rem_euclid(27.0) < 0.6;
    let sheen = 0.75 + 0.5 * (-((x - 250.0) / 170.0).powi(2)).exp();
    let paint = match y {
        y if y < deck(x) + 2.0 => [0.34, 0.25, 0.22],
        y if y < 345.0 => [0.030, 0.085, 0.130],
        y if y < 347.0 => [0.55, 0.45, 0.42],
        _ => [0.270, 0.040, 0.032],
    };
    let rust = mix(paint, [0.20, 0.075, 0.035], 0.55 * step(0.56, 0.80, streaks * 0.6 + worn * 0.5));
    let low = 1.0 - 0.30 * step(300.0, 364.0, y);
    Some(scale(rust, sheen * low * (0.82 + 0.36 * worn) * if seam { 0.66 } else { 1.0 }))
}

/// Plimsoll's disc with its line, the lines for other waters beside it, and the numbers' ticks at bow and stern.
fn marks(x: f64, y: f64) -> Option<Light> {
    const WHITE: Light = [0.74, 0.66, 0.62];
    const DISC: (f64, f64) = (424.0, 330.0);
    let ring = (distance(x, y, DISC) - 10.5).abs() < 1.25;
    let line = boxed(x, y, (DISC.0 - 18.0, DISC.1 - 1.2), (DISC.0 + 18.0, DISC.1 + 1.2));
    let post = boxed(x, y, (DISC.0 + 31.0, DISC.1 - 10.0), (DISC.0 + 33.0, DISC.1 + 11.2));
    let lines = [(-10.0, -1.0), (-4.5, 1.0), (0.0, 1.0), (5.0, 1.0), (10.0, 1.0)];
    let lines = lines.iter().any(|&(down, side)| {
        let (from, to) = if side > 0.0 { (32.0, 44.0) } else { (21.0, 32.0) };
        boxed(x, y, (DISC.0 + from, DISC.1 + down - 0.8), (DISC.0 + to, DISC.1 + down + 0.9))
    });
    let ticks = [206.0, 598.0].iter().any(|&at| {
        let long = ((y / 5.0).floor() as i64).rem_euclid(2) == 0;
        (314.0..344.0).contains(&y)
            && y.rem_euclid(5.0) < 1.3
            && (0.0..if long { 6.0 } else { 3.5 }).contains(&(x - at))
    });
    (ring || line || post || lines || ticks).then_some(WHITE)
}

fn house(x: f64, y: f64) -> Option<Light> {
    const TIERS: [(f64, f64, f64, f64); 5] = [
        (192.0, 278.0, 286.0, 310.0),
        (196.0, 270.0, 268.0, 286.0),
        (196.0, 266.0, 250.0, 268.0),
        (200.0, 262.0, 233.0, 250.0),
        (190.0, 270.0, 218.0, 233.0),
    ];
    if boxed(x, y, (203.0, 184.0), (228.0, 218.0)) {
        let round = 0.45 + 0.55 * (1.0 - ((x - 211.0) / 20.0).powi(2));
        let paint = if y < 190.0 {
            [0.03, 0.03, 0.035]
        } else if (196.0..207.0).contains(&y) {
            [0.62, 0.50, 0.46]
        } else {
            [0.46, 0.070, 0.045]
        };
        return Some(scale(paint, round));
    }
    let &(left, _, top, bottom) =
        TIERS.iter().find(|&&(left, right, top, bottom)| boxed(x, y, (left, top), (right, bottom)))?;
    let wall = mix([0.60, 0.42, 0.36], [0.30, 0.25, 0.33], step(left, left + 80.0, x));
    let bridge = top < 220.0;
    let pane = if bridge { (x - left).rem_euclid(7.2) > 1.3 } else { (x - left - 4.0).rem_euclid(9.0) < 4.2 };
    let rows = if bridge { (3.0, 9.0) } else { ((bottom - top) * 0.36, (bottom - top) * 0.70) };
    if pane && (rows.0..rows.1).contains(&(y - top)) {
        let lit = hash(((x - left) / 9.0).floor(), top, 8);
        return Some(if bridge || lit > 0.35 {
            scale([1.0, 0.66, 0.26], 0.75 + 0.3 * lit)
        } else {
            [0.05, 0.05, 0.08]
        });
    }
    let edge = y - top < 1.4;
    Some(if edge { [0.78, 0.58, 0.50] } else { scale(wall, 1.0 - 0.28 * step(0.0, 1.0, (y - top) / (bottom - top))) })
}

fn boxes(x: f64, y: f64) -> Option<Light> {
    const LONG: f64 = 36.0;
    const HIGH: f64 = 13.0;
    const FIRST: f64 = 286.0;
    const PAINTS: [Light; 8] = [
        [0.46, 0.060, 0.045],
        [0.035, 0.15, 0.33],
        [0.62, 0.26, 0.030],
        [0.040, 0.23, 0.17],
        [0.50, 0.46, 0.42],
        [0.26, 0.035, 0.085],
        [0.070, 0.30, 0.40],
        [0.56, 0.40, 0.060],
    ];
    const STACKS: [u32; 8] = [5, 5, 4, 5, 4, 4, 3, 2];
    let column = ((x - FIRST) / LONG).floor();
    let base = deck(FIRST) - 1.0;
    let row = ((base - y) / HIGH).floor();
    let stack = (column >= 0.0).then(|| STACKS.get(column as usize)).flatten()?;
    if row < 0.0 || row as u32 >= *stack {
        return None;
    }
    let (inside_x, inside_y) = (x - FIRST - column * LONG, base - y - row * HIGH);
    if inside_x < 1.4 || !(0.9..HIGH - 0.3).contains(&inside_y) {
        return Some([0.018, 0.016, 0.026]);
    }
    let paint = PAINTS[(hash(column, row, 12) * 7.999) as usize];
    let frame = !(2.8..LONG - 1.4).contains(&inside_x) || !(1.9..HIGH - 1.4).contains(&inside_y);
    let ribs = if frame { 1.12 } else { 0.80 + 0.30 * (inside_x * std::f64::consts::TAU / 2.6).sin() };
    let label = boxed(inside_x, inside_y, (22.0, 7.2), (31.0, 9.6)) && hash(column, row, 13) > 0.4;
    let paint = if label { [0.66, 0.58, 0.52] } else { paint };
    let worn = 0.80 + 0.4 * turbulence(x / 6.0, y / 5.0, 3);
    Some(scale(paint, ribs * worn * (1.20 - 0.5 * step(FIRST, 620.0, x)) * (0.72 + 0.07 * row)))
}

fn rigging(x: f64, y: f64) -> Option<Light> {
    let mast =
        segment(x, y, (612.0, deck(612.0)), (612.0, 206.0), 1.2) || segment(x, y, (234.0, 218.0), (234.0, 166.0), 1.1);
    let yards =
        segment(x, y, (602.0, 232.0), (622.0, 232.0), 0.7) || segment(x, y, (222.0, 184.0), (246.0, 184.0), 0.6);
    let stays = segment(x, y, (612.0, 208.0), (648.0, deck(648.0)), 0.35)
        || segment(x, y, (612.0, 208.0), (578.0, 268.0), 0.35)
        || segment(x, y, (234.0, 168.0), (266.0, 219.0), 0.35)
        || segment(x, y, (234.0, 168.0), (194.0, 219.0), 0.35);
    let above = deck(x) - y;
    let rails = (0.0..8.0).contains(&above) && (x > 578.0 && x < BOW - 1.0 || x > STERN && x < 192.0);
    let rails = rails && (x.rem_euclid(6.0) < 0.7 || (above - 7.4).abs() < 0.4 || (above - 4.0).abs() < 0.3);
    if distance(x, y, (612.0, 205.0)) < 2.0 || distance(x, y, (234.0, 165.0)) < 1.8 {
        return Some([1.0, 0.93, 0.75]);
    }
    (mast || yards || stays || rails).then_some([0.085, 0.060, 0.075])
}

// Water and quay --------------------------------------------------------------------------------------------------------

fn water(x: f64, y: f64) -> Light {
    let near = (y - HORIZON) / (QUAY - HORIZON);
    let (long, flat) = (6.0 + 46.0 * near, 1.0 + 6.5 * near);
    let wave = turbulence(x / long, y / flat, 4) - 0.5;
    let ripple = turbulence(x / (long * 0.22) + 31.0, y / (flat * 0.30) + 17.0, 3) - 0.5;
    let (aside, up) = ((wave * 10.0 + ripple * 5.0) * (0.25 + near), (wave * 46.0 + ripple * 22.0) * (0.15 + near));
    let in_ship = 2.0 * WATERLINE - y + up * 0.55;
    let mirrored = if y > WATERLINE - 1.0 && in_ship < WATERLINE { ship(x + aside * 1.4, in_ship) } else { None };
    let light = mirrored.unwrap_or_else(|| {
        let height = (HORIZON - (y - HORIZON) * 1.45 - up).clamp(1.0, HORIZON - 1.0);
        background(x + aside, height)
    });
    let steep = step(-0.30, 0.36, wave + ripple * 0.7);
    let deep = mix([0.006, 0.016, 0.034], [0.020, 0.030, 0.060], steep);
    let lane = (-((x - SUN.0 + aside * 2.0) / (16.0 + 46.0 * near)).powi(2)).exp();
    let glitter = lane * step(0.10, 0.26, ripple + wave * 0.5) * (1.0 - 0.45 * near);
    let foam = step(4.0, 0.0, y - WATERLINE)
        * step(0.0, 0.2, ripple)
        * f64::from(y > WATERLINE && (192.0..618.0).contains(&x));
    let surface = mix(deep, light, 0.46 + 0.36 * steep);
    add(add(surface, scale([1.0, 0.60, 0.24], glitter * 0.8)), scale([0.30, 0.26, 0.28], foam))
}

fn quay(x: f64, y: f64) -> Option<Light> {
    bollard(x, y).or_else(|| {
        let edge = QUAY + 2.2 * (turbulence(x / 11.0, 3.0, 4) - 0.5);
        if y < edge {
            return None;
        }
        let grain = turbulence(x / 2.4, y / 2.4, 4) * 0.7 + turbulence(x / 19.0, y / 15.0, 4) * 0.6;
        if y < QUAY + 12.0 {
            let joint = (x + 20.0).rem_euclid(64.0) < 1.4;
            let rim = 1.0 - 0.55 * step(0.0, 3.0, y - edge);
            return Some(scale([0.30, 0.20, 0.19], (0.35 + grain * 0.55 + rim * 0.5) * if joint { 0.35 } else { 1.0 }));
        }
        let row = ((y - QUAY - 12.0) / 14.0).floor();
        let along = x + 17.0 * (row % 2.0) + 5.0 * hash(row, 0.0, 21);
        let stone = (along / 34.0).floor();
        let wobble = 0.8 * (turbulence(x / 5.0, y / 5.0, 2) - 0.5);
        let joint = (along + wobble).rem_euclid(34.0) < 1.8 || (y - QUAY - 12.0 + wobble).rem_euclid(14.0) < 1.7;
        let tone = 0.7 + 0.5 * hash(stone, row, 22);
        let paint = mix([0.105, 0.080, 0.095], [0.150, 0.100, 0.085], hash(stone, row, 23));
        let lit = (0.35 + grain * 0.9) * (1.0 - 0.35 * step(QUAY, 512.0, y));
        Some(if joint { scale([0.018, 0.016, 0.022], 0.5 + grain) } else { scale(paint, tone * lit) })
    })
}

fn bollard(x: f64, y: f64) -> Option<Light> {
    let across = x - 96.0;
    let half = if (424.0..432.0).contains(&y) { 15.0 } else { 9.5 + 3.0 * step(450.0, 466.0, y) };
    let rounded = (424.0..428.0).contains(&y) && across.abs() > 15.0 - (428.0 - y) * -1.5 + (428.0 - y) * -2.5;
    if !(424.0..466.0).contains(&y) || across.abs() > half || rounded {
        return None;
    }
    let wound = (438.0..450.0).contains(&y);
    let side = 0.35 + 0.65 * (-((across - 2.0) / (half * 0.7)).powi(2)).exp();
    let strand = 0.75 + 0.25 * ((x * 0.9 + y * 2.4).sin());
    Some(if wound { scale([0.42, 0.29, 0.17], side * strand) } else { scale([0.13, 0.085, 0.085], side * 1.2) })
}

/// From the bollard to the stern, hanging.
fn rope(x: f64, y: f64) -> Option<Light> {
    let along = (x - 104.0) / (206.0 - 104.0);
    if !(0.0..1.0).contains(&along) {
        return None;
    }
    let middle = 443.0 + (316.0 - 443.0) * along + 34.0 * along * (1.0 - along) * 2.0;
    let strand = 0.65 + 0.35 * (x * 1.7 + y * 1.1).sin();
    ((y - middle).abs() < 1.7).then(|| scale([0.40, 0.27, 0.16], strand))
}

// Shapes and numbers ----------------------------------------------------------------------------------------------------

fn boxed(x: f64, y: f64, from: (f64, f64), to: (f64, f64)) -> bool {
    (from.0..to.0).contains(&x) && (from.1..to.1).contains(&y)
}

fn distance(x: f64, y: f64, from: (f64, f64)) -> f64 {
    (x - from.0).hypot(y - from.1)
}

/// Whether a point is within `half` of the line from `a` to `b`.
fn segment(x: f64, y: f64, a: (f64, f64), b: (f64, f64), half: f64) -> bool {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let along = (((x - a.0) * dx + (y - a.1) * dy) / (dx * dx + dy * dy)).clamp(0.0, 1.0);
    distance(x, y, (a.0 + dx * along, a.1 + dy * along)) < half
}

/// A girder of crossed bars around y = 0.
fn lattice(x: f64, y: f64, period: f64, high: f64, half: f64) -> bool {
    let saw = (x.rem_euclid(period) / period - 0.5).abs() * 2.0;
    y.abs() < high / 2.0 && (high / 2.0 - y.abs() < half * 2.0 || (y / high + 0.5 - saw).abs() * high < half * 1.6)
}

fn glow(x: f64, y: f64, centre: (f64, f64), radius: f64) -> f64 {
    1.0 / (1.0 + (distance(x, y, centre) / radius).powi(2)).powf(1.5)
}

/// From 0 at `from` to 1 at `to`, smoothly; downward if `to` is less.
fn step(from: f64, to: f64, x: f64) -> f64 {
    let t = ((x - from) / (to - from)).clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

fn mix(a: Light, b: Light, part: f64) -> Light {
    std::array::from_fn(|at| a[at] + (b[at] - a[at]) * part)
}

fn add(a: Light, b: Light) -> Light {
    std::array::from_fn(|at| a[at] + b[at])
}

fn scale(light: Light, by: f64) -> Light {
    light.map(|light| light * by)
}

fn gradient(stops: &[(f64, Light)], at: f64) -> Light {
    let after = stops.iter().position(|&(place, _)| place >= at).unwrap_or(stops.len() - 1).max(1);
    let ((from, a), (to, b)) = (stops[after - 1], stops[after]);
    mix(a, b, step(from, to, at))
}

/// 0 to 1, the same for the same numbers.
fn hash(x: f64, y: f64, seed: u32) -> f64 {
    let mut bits =
        (x as i64 as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (y as i64 as u64).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    bits ^= u64::from(seed).wrapping_mul(0x1656_67b1_9e37_79f9);
    bits = (bits ^ (bits >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 32)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((bits ^ (bits >> 29)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Noise of several sizes, 0 to 1.
fn turbulence(x: f64, y: f64, octaves: u32) -> f64 {
    let (mut sum, mut weight, mut total) = (0.0, 1.0, 0.0);
    for octave in 0..octaves {
        let size = f64::from(1_u32 << octave);
        sum += weight * noise(x * size, y * size, octave);
        total += weight;
        weight *= 0.5;
    }
    sum / total
}

fn noise(x: f64, y: f64, seed: u32) -> f64 {
    let (column, row) = (x.floor(), y.floor());
    let (across, down) = (step(0.0, 1.0, x - column), step(0.0, 1.0, y - row));
    let corner = |right: f64, below: f64| hash(column + right, row + below, 100 + seed);
    let upper = corner(0.0, 0.0) + (corner(1.0, 0.0) - corner(0.0, 0.0)) * across;
    let lower = corner(0.0, 1.0) + (corner(1.0, 1.0) - corner(0.0, 1.0)) * across;
    upper + (lower - upper) * down
}

/// Light as 8-bit sRGB; what is too bright bends toward white.
fn coded(light: f64) -> u8 {
    let light = if light < 0.7 { light.max(0.0) } else { 0.7 + 0.3 * (1.0 - (-(light - 0.7) / 0.3).exp()) };
    let coded = if light <= 0.003_130_8 { light * 12.92 } else { 1.055 * light.powf(1.0 / 2.4) - 0.055 };
    (coded * 255.0 + 0.5) as u8
}
