//! Rings hold every row for as long as somebody needs it.

use plimsoll_runtime::Cancellation;

use super::programs::{Dice, format_of_sources, frame, program};
use super::reference;
use crate::frames::host::{HostWork, bytes};

#[test]
fn rings_hold_what_is_needed() {
    let (mut held, mut whole) = (0, 0);
    for seed in 0..1000 {
        let mut dice = Dice::new(seed);
        let program = program(&mut dice);
        let mut work = HostWork::open(&program).unwrap();
        let from = program.from.unwrap_or_else(|| format_of_sources(&program));
        // Twice, for a session is used again, each time with nothing useful in its rings.
        for _ in 0..2 {
            work.spoil();
            let input = frame(&mut dice, from);
            let sources = reference::planes_of(from, &input);
            let wanted = reference::results(&program, sources.clone());
            let given: Vec<&[f32]> = sources.iter().map(Vec::as_slice).collect();
            match program.to {
                Some(to) => {
                    let room = Some(vec![0xaa; to.frame_bytes()]);
                    let got = work.frame(&program, Some(&input), &given, room, Cancellation::never()).unwrap();
                    assert!(got == reference::frame_of(to, &wanted), "seed {seed}");
                }
                None => {
                    let got = work.planes(&program, Some(&input), Cancellation::never()).unwrap();
                    assert!(got == wanted, "seed {seed}");
                }
            }
        }
        held += bytes(&program).0.0;
        let nodes = program.graph.nodes().iter();
        whole += nodes.map(|node| node.size().pixels() * 4 * node.outputs() as u64).sum::<u64>();
    }
    // Else the rings would be right only because they are whole planes.
    assert!(held * 10 < whole * 8, "{held} bytes of rings for {whole} of planes");
}
