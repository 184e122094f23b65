//! Uses of fragments as programs make them, from seeds.

use crate::weights::Dice;

pub(crate) enum Step {
    /// Somebody says what he will use next, in order.
    Hint(Vec<usize>),
    /// He has ended, and takes it back.
    Withdraw(Vec<usize>),
    Use(usize),
}

pub(crate) struct Trace {
    pub(crate) name: &'static str,
    pub(crate) sizes: Vec<u64>,
    pub(crate) capacity: u64,
    pub(crate) steps: Vec<Step>,
}

impl Trace {
    pub(crate) fn uses(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, Step::Use(_))).count()
    }
}

/// A model: numbers of its fragments in the order in which a pass uses them.
struct Layers(Vec<usize>);

/// Fragments of a decoder of so many layers: attention is small, the rest is large, embedding and head larger.
fn decoder(sizes: &mut Vec<u64>, layers: usize, width: u64) -> Layers {
    let first = sizes.len();
    sizes.push(8 * width);
    for _ in 0..layers {
        sizes.extend([width, width / 2, width / 2, width, 3 * width, 3 * width, 3 * width]);
    }
    sizes.push(8 * width);
    Layers((first..sizes.len()).collect())
}

fn passes(steps: &mut Vec<Step>, model: &Layers, count: usize, hinted: bool) {
    for _ in 0..count {
        if hinted {
            // A pass, and that another may follow.
            steps.push(Step::Hint(model.0.iter().chain(&model.0).copied().collect()));
        }
        steps.extend(model.0.iter().map(|key| Step::Use(*key)));
    }
    if hinted {
        steps.push(Step::Withdraw(model.0.clone()));
    }
}

fn share(sizes: &[u64], share: f64) -> u64 {
    (sizes.iter().sum::<u64>() as f64 * share) as u64
}

/// From one of these numbers to the other, both included.
fn from_to(dice: &mut Dice, from: usize, to: usize) -> usize {
    from + dice.next() as usize % (to - from + 1)
}

fn between(dice: &mut Dice, low: f64, high: f64) -> f64 {
    low + (high - low) * dice.unit()
}

/// One model that does not fit, token after token. Nobody says anything: its order has to be learnt.
fn one_model(dice: &mut Dice) -> Trace {
    let (mut sizes, mut steps) = (Vec::new(), Vec::new());
    let model = decoder(&mut sizes, from_to(dice, 8, 40), 4_000);
    passes(&mut steps, &model, from_to(dice, 20, 50), false);
    Trace { name: "one model, no hints", capacity: share(&sizes, between(dice, 0.2, 0.9)), sizes, steps }
}

/// A draft model guesses a few tokens, a large one checks them.
fn speculative(dice: &mut Dice) -> Trace {
    let (mut sizes, mut steps) = (Vec::new(), Vec::new());
    let (draft, large) =
        (decoder(&mut sizes, from_to(dice, 2, 8), 1_000), decoder(&mut sizes, from_to(dice, 12, 32), 4_000));
    for _ in 0..40 {
        passes(&mut steps, &draft, from_to(dice, 2, 6), false);
        passes(&mut steps, &large, 1, false);
    }
    Trace { name: "draft and large model", capacity: share(&sizes, between(dice, 0.3, 0.9)), sizes, steps }
}

/// A language model and an image model in turns of random length; each holder says what its pass will use, or does not.
fn two_holders(name: &'static str, dice: &mut Dice, hinted: bool) -> Trace {
    let (mut sizes, mut steps) = (Vec::new(), Vec::new());
    let (words, images) =
        (decoder(&mut sizes, from_to(dice, 8, 20), 4_000), decoder(&mut sizes, from_to(dice, 8, 20), 5_000));
    for _ in 0..12 {
        passes(&mut steps, &words, from_to(dice, 3, 14), hinted);
        passes(&mut steps, &images, from_to(dice, 4, 11), hinted);
    }
    Trace { name, capacity: share(&sizes, between(dice, 0.4, 0.8)), sizes, steps }
}

/// A model that is used all the time and large ones that are looked at once each; after a while it is another model.
fn hot_and_scans(dice: &mut Dice) -> Trace {
    let (mut sizes, mut steps) = (Vec::new(), Vec::new());
    let layers = from_to(dice, 8, 16);
    let (first, second) = (decoder(&mut sizes, layers, 3_000), decoder(&mut sizes, layers, 3_000));
    let capacity = share(&sizes, between(dice, 0.5, 0.7));
    for round in 0..20 {
        let hot = if round < 10 { &first } else { &second };
        passes(&mut steps, hot, from_to(dice, 2, 6), false);
        let scanned = decoder(&mut sizes, layers, 3_000);
        passes(&mut steps, &scanned, 1, false);
    }
    Trace { name: "hot models and scans", capacity, sizes, steps }
}

/// Layers whose experts are chosen by chance, some far more often, and others from one text to the next; the dense parts
/// are used every time.
fn experts(dice: &mut Dice) -> Trace {
    let (mut sizes, mut steps) = (Vec::new(), Vec::new());
    let (layers, experts) = (8, 16 << from_to(dice, 0, 2));
    sizes.extend(vec![6_000; layers]);
    let first = sizes.len();
    sizes.extend(vec![3_000; layers * experts]);
    let texts = from_to(dice, 2, 16);
    for _text in 0..texts {
        let favourites: Vec<usize> = (0..layers).map(|_| dice.next() as usize % experts).collect();
        for _token in 0..1_000 / texts {
            for (layer, favourite) in favourites.iter().enumerate() {
                steps.push(Step::Use(layer));
                for _ in 0..2 {
                    // About as many for each power of two.
                    let expert = ((experts as f64).powf(dice.unit() * dice.unit()) - 1.0) as usize;
                    steps.push(Step::Use(first + layer * experts + (favourite + expert) % experts));
                }
            }
        }
    }
    Trace { name: "experts by chance", capacity: share(&sizes, between(dice, 0.2, 0.7)), sizes, steps }
}

/// Each use by itself, the n-th as often as one over n to a power; who is the n-th changes every so many uses.
fn zipf(name: &'static str, dice: &mut Dice, power: f64, every: usize) -> Trace {
    let sizes: Vec<u64> = (0..300).map(|_| from_to(dice, 500, 8_000) as u64).collect();
    let mut sums = vec![0.0];
    (1..=sizes.len()).for_each(|n| sums.push(sums[n - 1] + 1.0 / (n as f64).powf(power)));
    let all = sums[sizes.len()];
    let pick = |at: usize, dice: &mut Dice| {
        let wanted = dice.unit() * all;
        let n = sums.partition_point(|sum| *sum <= wanted) - 1;
        (n.min(sizes.len() - 1) + 3 * (at / every)) % sizes.len()
    };
    let steps = (0..20_000).map(|at| Step::Use(pick(at, dice))).collect();
    Trace { name, capacity: share(&sizes, between(dice, 0.1, 0.5)), sizes, steps }
}

/// Where what comes next follows from what came.
pub(crate) fn with_an_order(seed: u64) -> Vec<Trace> {
    let mut dice = Dice::new(seed);
    vec![
        one_model(&mut dice),
        speculative(&mut dice),
        two_holders("two holders, hints", &mut dice, true),
        hot_and_scans(&mut dice),
    ]
}

pub(crate) fn turns_untold(seed: u64) -> Trace {
    two_holders("two holders, no hints", &mut Dice::new(seed), false)
}

/// Where it does not.
pub(crate) fn by_chance(seed: u64) -> Vec<Trace> {
    let mut dice = Dice::new(seed);
    let (power, every) = (between(&mut dice, 0.6, 1.2), from_to(&mut dice, 20, 400));
    vec![
        experts(&mut dice),
        zipf("by chance", &mut dice, power, usize::MAX),
        zipf("all alike by chance", &mut dice, 0.0, usize::MAX),
        zipf("by changing chance", &mut dice, 1.0, every),
    ]
}
