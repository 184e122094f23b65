// How much another frame counts at a pixel: less, the more it differs there and around.

fn difference_squared(x: u32, y: u32) -> f32 {
    let at = y * params.width + x;
    let apart = other[at] - own[at];
    return apart * apart;
}

fn column(x: u32, y: u32) -> f32 {
    let above = difference_squared(x, y - min(y, 1u));
    let below = difference_squared(x, min(y + 1u, params.height - 1u));
    return above + difference_squared(x, y) + below;
}

fn likeness(x: u32, y: u32) -> f32 {
    let left = column(x - min(x, 1u), y);
    let right = column(min(x + 1u, params.width - 1u), y);
    return power_of_two(params.strength * (left + column(x, y) + right));
}
