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

/// One model that does not fit, token after token. Nobody says anything: its order has to be learnt.
fn one_model() -> Trace {
    let (mut sizes, mut steps) = (Vec::new(), Vec::new());
    let model = decoder(&mut sizes, 24, 4_000);
    passes(&mut steps, &model, 40, false);
    Trace { name: "one model, no hints", capacity: share(&sizes, 0.7), sizes, steps }
}

/// A draft model guesses four tokens, a large one checks them.
fn speculative() -> Trace {
    let (mut sizes, mut steps) = (Vec::new(), Vec::new());
    let (draft, large) = (decoder(&mut sizes, 4, 1_000), decoder(&mut sizes, 24, 4_000));
    for _ in 0..40 {
        passes(&mut steps, &draft, 4, false);
        passes(&mut steps, &large, 1, false);
    }
    Trace { name: "draft and large model", capacity: share(&sizes, 0.6), sizes, steps }
}

/// A language model and an image model in turns of random length; each holder says what its pass will use.
fn two_holders() -> Trace {
    let (mut sizes, mut steps, mut dice) = (Vec::new(), Vec::new(), Dice::new(7));
    let (words, images) = (decoder(&mut sizes, 16, 4_000), decoder(&mut sizes, 12, 5_000));
    for _ in 0..12 {
        passes(&mut steps, &words, 3 + (dice.next() % 12) as usize, true);
        passes(&mut steps, &images, 4 + (dice.next() % 8) as usize, true);
    }
    Trace { name: "two holders in turns", capacity: share(&sizes, 0.6), sizes, steps }
}

/// A model that is used all the time and large ones that are looked at once each; after a while it is another model.
fn hot_and_scans() -> Trace {
    let (mut sizes, mut steps) = (Vec::new(), Vec::new());
    let (first, second) = (decoder(&mut sizes, 12, 3_000), decoder(&mut sizes, 12, 3_000));
    let capacity = share(&sizes, 0.55);
    for round in 0..20 {
        let hot = if round < 10 { &first } else { &second };
        passes(&mut steps, hot, 4, false);
        let scanned = decoder(&mut sizes, 12, 3_000);
        passes(&mut steps, &scanned, 1, false);
    }
    Trace { name: "hot models and scans", capacity, sizes, steps }
}

/// Layers whose experts are chosen by chance, some far more often, and others from one text to the next; the dense parts
/// are used every time.
pub(crate) fn experts() -> Trace {
    let (mut sizes, mut steps, mut dice) = (Vec::new(), Vec::new(), Dice::new(11));
    let (layers, experts) = (8, 32);
    sizes.extend(vec![6_000; layers]);
    let first = sizes.len();
    sizes.extend(vec![3_000; layers * experts]);
    for _text in 0..8 {
        let favourites: Vec<usize> = (0..layers).map(|_| dice.next() as usize % experts).collect();
        for _token in 0..100 {
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
    Trace { name: "experts by chance", capacity: share(&sizes, 0.55), sizes, steps }
}

pub(crate) fn all() -> Vec<Trace> {
    vec![one_model(), speculative(), two_holders(), hot_and_scans()]
}
