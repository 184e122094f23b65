//! Properties of every plan, held against an executor written from the rule alone.

use proptest::prelude::*;
use smallvec::SmallVec;

use super::*;
use crate::DeviceSet;

/// The rule of `README.md`, as plainly as it can be written: no classes, no bit sets, no heap. Returns when each
/// task ends.
fn execute(tasks: &[KnownTask], devices: &[KnownDevice], plan: &Plan) -> Vec<Nanos> {
    let mut end: Vec<Option<u64>> = vec![None; tasks.len()];
    let mut slots: Vec<Vec<u64>> =
        devices.iter().map(|d| d.slots_free_at(tasks.len()).map(|at| at.0).collect()).collect();
    let mut done = vec![false; tasks.len()];
    let mut now = 0;
    loop {
        // Everything that has ended by now, before anything starts.
        (0..tasks.len()).for_each(|task| done[task] = end[task].is_some_and(|end| end <= now));
        let mut taken: Vec<usize> = Vec::new();
        for (device, slots) in slots.iter_mut().enumerate() {
            for slot in slots.iter_mut().filter(|free_at| **free_at <= now) {
                let ready = |&task: &usize| {
                    plan.steps[task].device == device
                        && end[task].is_none()
                        && tasks[task].not_before.0 <= now
                        && tasks[task].after.iter().all(|&before| done[before as usize])
                };
                let Some(task) = (0..tasks.len()).filter(ready).min_by_key(|&task| plan.steps[task].rank) else {
                    break;
                };
                *slot = now + tasks[task].costs[device].expect("planned where it can run").0;
                end[task] = Some(*slot);
                taken.push(task);
            }
        }
        if taken.iter().any(|&task| end[task] == Some(now)) {
            continue;
        }
        let delays = tasks.iter().map(|task| task.not_before.0);
        let ends = end.iter().flatten().chain(slots.iter().flatten()).copied().chain(delays);
        match ends.filter(|&at| at > now).min() {
            Some(next) => now = next,
            None => break,
        }
    }
    assert!(end.iter().all(Option::is_some), "a task never started");
    end.into_iter().flatten().map(Nanos).collect()
}

fn device() -> impl Strategy<Value = KnownDevice> {
    let busy = prop::collection::vec(0u64..30, 0..4);
    (prop_oneof![1 => Just(0), 6 => 1usize..4], prop_oneof![3 => Just(0), 1 => 0u64..30], busy).prop_map(
        |(slots, free_at, busy)| KnownDevice {
            slots,
            free_at: Nanos(free_at),
            busy: busy.into_iter().map(Nanos).collect(),
        },
    )
}

/// Small costs, so that ties and tasks of no cost are common; a third of the devices are twins of the one before.
fn set() -> impl Strategy<Value = (Vec<KnownTask>, Vec<KnownDevice>)> {
    let devices = prop::collection::vec((device(), 0u8..3), 0..4);
    (1usize..4, devices).prop_flat_map(|(slots, rest)| {
        let mut devices = vec![KnownDevice { slots, ..KnownDevice::default() }];
        devices.extend(rest.iter().map(|(device, _)| device.clone()));
        let twin: Vec<bool> = rest.iter().map(|(_, rng)| *rng == 0).collect();
        let count = devices.len();
        let task = (
            0u64..20,
            prop::collection::vec(prop::option::weighted(0.8, 0u64..20), count),
            prop::collection::vec(any::<prop::sample::Index>(), 0..4),
            prop_oneof![4 => Just(0u8), 1 => 0u8..3],
            prop_oneof![4 => Just(0u64), 1 => 0u64..30],
        );
        prop::collection::vec(task, 0..40).prop_map(move |raw| {
            let tasks = raw.into_iter().enumerate().map(|(place, (first, rest, after, urgency, not_before))| {
                let mut costs: SmallVec<[Option<Nanos>; 4]> = rest.into_iter().map(|cost| cost.map(Nanos)).collect();
                costs[0] = costs[0].or(Some(Nanos(first)));
                (1..costs.len())
                    .filter(|&device| twin[device - 1])
                    .for_each(|device| costs[device] = costs[device - 1]);
                let after = after.iter().filter(|_| place > 0).map(|index| index.index(place) as u32).collect();
                KnownTask { costs, after, urgency, not_before: Nanos(not_before) }
            });
            (tasks.collect(), devices.clone())
        })
    })
}

/// The most urgent of a task and all that wait for it; tasks only wait for earlier ones here.
fn inherited(tasks: &[KnownTask]) -> Vec<u8> {
    let mut urgency: Vec<u8> = tasks.iter().map(|task| task.urgency).collect();
    for task in (0..tasks.len()).rev() {
        for &before in &tasks[task].after {
            urgency[before as usize] = urgency[before as usize].max(urgency[task]);
        }
    }
    urgency
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_executor_gets_the_makespan_the_plan_predicts((tasks, devices) in set(), simulations in 0u32..60, seed: u64) {
        let plan = plan(&tasks, &devices, Budget { simulations, seed }).expect("a valid set");
        let ends = execute(&tasks, &devices, &plan);
        prop_assert_eq!(ends.iter().copied().max().unwrap_or_default(), plan.makespan);
        prop_assert_eq!(ends, plan.ends);
        prop_assert!(plan.simulations <= simulations.max(1));
    }

    #[test]
    fn no_plan_beats_the_bound((tasks, devices) in set(), seed: u64) {
        let plan = plan(&tasks, &devices, Budget { simulations: 100, seed }).expect("a valid set");
        prop_assert!(plan.lower_bound <= plan.makespan, "{} > {}", plan.lower_bound, plan.makespan);
        prop_assert_eq!(plan.lower_bound, lower_bound(&tasks, &devices));
    }

    /// Giving up early is only a way to be quick: a limit refuses exactly the drafts that end after it.
    #[test]
    fn a_limit_refuses_what_ends_after_it_and_nothing_else((tasks, devices) in set(), recipe in 0..RECIPES.len()) {
        let problem = Problem::new(&tasks, &devices).expect("a valid set");
        let draft = Drafter::new(&problem, &Bound::new(&problem).prices).draft(RECIPES[recipe]);
        let mut simulator = Simulator::new(&problem);
        let makespan = simulator.play(&draft, UNLIMITED).expect("no limit");
        prop_assert_eq!(simulator.play(&draft, makespan), Some(makespan));
        if makespan > 0 {
            prop_assert_eq!(simulator.play(&draft, makespan - 1), None);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_plan((tasks, devices) in set(), seed: u64) {
        let budget = Budget { simulations: 40, seed };
        prop_assert_eq!(plan(&tasks, &devices, budget), plan(&tasks, &devices, budget));
    }

    #[test]
    fn more_simulations_never_make_a_plan_longer((tasks, devices) in set(), seed: u64) {
        let makespan = |simulations| plan(&tasks, &devices, Budget { simulations, seed }).expect("a valid set").makespan;
        prop_assert!(makespan(1) >= makespan(5) && makespan(5) >= makespan(50));
    }

    #[test]
    fn a_plan_made_again_in_a_hurry_is_no_longer_than_the_one_in_force((tasks, devices) in set(), seed: u64) {
        let thorough = plan(&tasks, &devices, Budget { simulations: 200, seed }).unwrap();
        let hurried = plan_again(&tasks, &devices, Budget { simulations: 1, seed }, &thorough.steps).unwrap();
        prop_assert!(hurried.makespan <= thorough.makespan, "{} and {}", hurried.makespan, thorough.makespan);
        prop_assert_eq!(execute(&tasks, &devices, &hurried), hurried.ends);
    }

    #[test]
    fn the_more_urgent_ranks_first_and_no_rank_is_given_twice((tasks, devices) in set(), seed: u64) {
        let plan = plan(&tasks, &devices, Budget { simulations: 40, seed }).expect("a valid set");
        let urgency = inherited(&tasks);
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        order.sort_by_key(|&task| plan.steps[task].rank);
        prop_assert!(order.is_sorted_by(|&a, &b| plan.steps[a].rank < plan.steps[b].rank && urgency[a] >= urgency[b]));
    }
}

const DEVICE: KnownDevice = KnownDevice { slots: 1, free_at: Nanos::ZERO, busy: Vec::new() };

fn task<const N: usize>(costs: [u64; N], after: &[u32]) -> KnownTask {
    let costs = costs.map(|cost| Some(Nanos(cost))).into_iter().collect();
    KnownTask { costs, after: after.into(), ..KnownTask::default() }
}

fn refusal(tasks: &[KnownTask], devices: &[KnownDevice]) -> PlanError {
    assert_eq!(lower_bound(tasks, devices), Nanos::MAX);
    plan(tasks, devices, Budget::default()).expect_err("not a set that can be planned")
}

#[test]
fn a_set_that_cannot_be_planned_is_refused_with_the_task() {
    let nowhere = KnownTask { costs: [Some(Nanos(1)), None].into_iter().collect(), ..KnownTask::default() };
    let no_slots = KnownDevice { slots: 0, ..DEVICE };
    assert_eq!(refusal(&[task([1], &[1]), task([1], &[0])], &[DEVICE]), PlanError::Cycle { task: 0 });
    assert_eq!(refusal(&[task([1], &[0])], &[DEVICE]), PlanError::Cycle { task: 0 });
    assert_eq!(refusal(&[task([1], &[7])], &[DEVICE]), PlanError::NoSuchTask { task: 0, after: 7 });
    assert_eq!(refusal(&[task([1], &[1])], &[DEVICE]), PlanError::NoSuchTask { task: 0, after: 1 });
    assert_eq!(refusal(&[nowhere], &[no_slots, DEVICE]), PlanError::FitsNowhere { task: 0 });
    assert_eq!(
        refusal(&[task([1], &[])], &[DEVICE, DEVICE]),
        PlanError::CostsMismatch { task: 0, costs: 1, devices: 2 }
    );
    let devices = vec![DEVICE; DeviceSet::LIMIT + 1];
    assert_eq!(refusal(&[], &devices), PlanError::TooManyDevices { devices: DeviceSet::LIMIT + 1 });
}

#[test]
fn a_chain_is_as_long_as_its_tasks_wherever_they_run() {
    let tasks = [task([10, 30], &[]), task([30, 10], &[0]), task([10, 10], &[1])];
    let busy = KnownDevice { slots: 2, free_at: Nanos(5), ..DEVICE };
    assert_eq!(lower_bound(&tasks, &[busy.clone(), busy]), Nanos(35));
}

#[test]
fn work_that_one_device_alone_can_do_is_not_shared_out() {
    let only_second = KnownTask { costs: [None, Some(Nanos(10))].into_iter().collect(), ..KnownTask::default() };
    assert_eq!(lower_bound(&vec![only_second; 4], &[DEVICE, DEVICE]), Nanos(40));
}

/// The best of all prices at which some task costs the same on both devices, tried one after the other.
fn best_of_all_prices(tasks: &[[Option<u64>; 2]], slots: [u64; 2]) -> u64 {
    let bound = |prices: [u64; 2]| {
        let cheapest =
            |costs: &[Option<u64>; 2]| costs.iter().zip(prices).filter_map(|(cost, p)| Some(cost.as_ref()? * p)).min();
        let owed: u64 = tasks.iter().filter_map(cheapest).sum();
        owed.div_ceil(prices[0] * slots[0] + prices[1] * slots[1])
    };
    let ratios = tasks.iter().filter_map(|costs| Some([costs[1]?, costs[0]?]));
    ratios.chain([[1, 0], [0, 1]]).map(bound).max().unwrap_or_default()
}

#[test]
fn the_bound_of_two_kinds_of_device_is_the_best_of_all_prices() {
    for seed in 0..50 {
        let mut rng = crate::rng::Rng::new(seed);
        let slots = if seed % 2 == 0 { [4, 1] } else { [1, 3] };
        let costs: Vec<[Option<u64>; 2]> = (0..40)
            .map(|_| {
                let both = [rng.within(20, 400), rng.within(20, 400)].map(Some);
                match rng.below(8) {
                    0 => [None, both[1]],
                    1 => [both[0], None],
                    _ => both,
                }
            })
            .collect();
        let devices = slots.map(|slots| KnownDevice { slots: slots as usize, ..DEVICE });
        let known = |costs: &[Option<u64>; 2]| KnownTask {
            costs: costs.map(|cost| cost.map(Nanos)).into_iter().collect(),
            ..KnownTask::default()
        };
        let tasks: Vec<KnownTask> = costs.iter().map(known).collect();
        assert_eq!(lower_bound(&tasks, &devices), Nanos(best_of_all_prices(&costs, slots)), "seed {seed}");
    }
}

#[test]
fn nothing_to_do_takes_no_time() {
    for devices in [&[][..], &[DEVICE][..]] {
        let plan = plan(&[], devices, Budget::default()).expect("an empty set is a set");
        assert_eq!((plan.steps.len(), plan.makespan, plan.lower_bound), (0, Nanos::ZERO, Nanos::ZERO));
    }
}

#[test]
fn absurd_costs_saturate() {
    let tasks = vec![task([u64::MAX, u64::MAX - 1], &[]), task([u64::MAX, 3], &[0])];
    let late = KnownDevice { slots: usize::MAX, free_at: Nanos::MAX, ..DEVICE };
    let plan = plan(&tasks, &[DEVICE, late], Budget::default()).expect("large is not wrong");
    assert!(plan.lower_bound <= plan.makespan);
}

#[test]
fn equal_devices_share_the_work() {
    let tasks: Vec<_> = (0..12).map(|_| task([5, 5, 5], &[])).collect();
    let plan = plan(&tasks, &[DEVICE; 3], Budget { simulations: 1, seed: 0 }).expect("a valid set");
    assert_eq!(plan.makespan, Nanos(20));
    let again = super::plan(&tasks, &[DEVICE; 3], Budget::default()).expect("a valid set");
    assert_eq!((again.makespan, again.simulations), (Nanos(20), 1), "what cannot be beaten is not improved");
}

#[test]
fn as_many_recipes_are_tried_as_the_budget_allows() {
    for seed in 0..4 {
        let (tasks, devices) = drawn_set(seed);
        let problem = Problem::new(&tasks, &devices).expect("a valid set");
        let bound = Bound::new(&problem);
        let drafter = Drafter::new(&problem, &bound.prices);
        let mut simulator = Simulator::new(&problem);
        let drafts = RECIPES.map(|recipe| simulator.play(&drafter.draft(recipe), UNLIMITED).expect("no limit"));
        for simulations in 1..=RECIPES.len() {
            let budget = Budget { simulations: simulations as u32, seed: 0 };
            let plan = plan(&tasks, &devices, budget).expect("a valid set");
            assert_eq!(
                Some(&plan.makespan.0),
                drafts[..simulations].iter().min(),
                "{seed}: {simulations} of {drafts:?}"
            );
            assert_eq!(plan.simulations, budget.simulations);
        }
    }
}

#[test]
fn the_bound_of_three_kinds_of_device_is_tight_where_each_has_its_own_work() {
    let tasks: Vec<_> =
        (0..30).map(|n| task([0, 1, 2].map(|kind| if n % 3 == kind { 100 } else { 1000 }), &[])).collect();
    let plan = plan(&tasks, &[DEVICE; 3], Budget::default()).expect("a valid set");
    assert_eq!((plan.lower_bound, plan.makespan), (Nanos(1000), Nanos(1000)));
}

#[test]
fn a_large_set_gets_a_share_of_the_budget() {
    let size = TASKS_WITH_FULL_BUDGET * 4;
    let tasks: Vec<_> = (0..size as u32)
        .map(|n| task([7 + u64::from(n % 5), 3], &[n.saturating_sub(40)][..usize::from(n > 99)]))
        .collect();
    let plan = plan(&tasks, &[DEVICE; 2], Budget { simulations: 16, seed: 1 }).expect("a valid set");
    assert!((1..=4).contains(&plan.simulations));
}

/// Sets of some hundred tasks with edges between them, on three devices: what the planner makes of each.
fn drawn_set(seed: u64) -> (Vec<KnownTask>, Vec<KnownDevice>) {
    let mut rng = crate::rng::Rng::new(seed);
    let devices =
        [(2, 0), (1, 50), (1, 0)].map(|(slots, free_at)| KnownDevice { slots, free_at: Nanos(free_at), ..DEVICE });
    let tasks = (0..120_usize).map(|at| {
        let cpu = rng.within(20, 400);
        let gpu = cpu / rng.within(1, 12);
        let costs = [Some(Nanos(cpu)), Some(Nanos(gpu)), (!rng.chance(0.2)).then_some(Nanos(gpu + 5))];
        let edges = if at == 0 { 0 } else { rng.below(3) };
        let after = (0..edges).map(|_| rng.below(at) as u32).collect();
        KnownTask { costs: costs.into_iter().collect(), after, ..KnownTask::default() }
    });
    (tasks.collect(), devices.to_vec())
}

/// The makespans that the planner reaches today, beside the lower bound. A change of the search shows here:
/// if it is for the better, or no worse on the whole, renew the figures.
#[test]
fn the_search_is_as_good_as_it_was() {
    let ratios = (0..8).map(|seed| {
        let (tasks, devices) = drawn_set(seed);
        let plan = plan(&tasks, &devices, Budget { simulations: 300, seed: 0 }).expect("every task can run");
        assert_eq!(execute(&tasks, &devices, &plan), plan.ends);
        format!("{seed}: {} of {}", plan.makespan.0, plan.lower_bound.0)
    });
    expect_test::expect![[r#"
        0: 2093 of 2033
        1: 1921 of 1908
        2: 2262 of 2223
        3: 1971 of 1939
        4: 1893 of 1865
        5: 2340 of 2302
        6: 1813 of 1777
        7: 2004 of 1980"#]]
    .assert_eq(&ratios.collect::<Vec<_>>().join("\n"));
}

/// What each recipe alone makes of such sets, with three kinds of device and with two, all of them idle or the fast ones
/// busy at first: the search mends a bad draft, and would hide it.
#[test]
fn the_drafts_are_as_good_as_they_were() {
    let makespans = (0..12).map(|seed| {
        let (mut tasks, mut devices) = drawn_set(seed);
        let kinds = if seed % 2 == 0 { 3 } else { 2 };
        tasks.iter_mut().for_each(|task| task.costs.truncate(kinds));
        devices.truncate(kinds);
        if seed % 3 == 0 {
            devices[1].free_at = Nanos(1_500);
        }
        for (at, task) in tasks.iter_mut().enumerate() {
            match seed % 4 {
                // Few tasks can run on the CPU, …
                1 if at % 8 != 0 => task.costs[0] = None,
                // … the first device is the fast one, …
                2 => task.costs.swap(0, 1),
                // … some tasks can run on the CPU alone.
                3 if at % 4 == 0 => task.costs[1] = None,
                _ => {}
            }
        }
        if seed % 4 == 3 {
            devices[1].slots = 2;
        }
        let problem = Problem::new(&tasks, &devices).expect("a valid set");
        let bound = Bound::new(&problem);
        let drafter = Drafter::new(&problem, &bound.prices);
        let mut simulator = Simulator::new(&problem);
        let makespans = RECIPES.map(|recipe| simulator.play(&drafter.draft(recipe), UNLIMITED).expect("no limit"));
        format!("{seed}: {makespans:?} of {}", bound.makespan)
    });
    expect_test::expect![[r#"
        0: [2710, 2730, 2918, 2759, 2675, 2795] of 2602
        1: [6032, 5961, 5944, 6032, 5944, 6032] of 5944
        2: [2285, 2179, 2243, 2134, 2269, 2262] of 2068
        3: [3680, 3843, 3687, 3868, 3687, 3680] of 3433
        4: [1946, 1928, 2237, 2040, 2031, 2057] of 1865
        5: [7494, 7494, 7494, 7494, 7494, 7494] of 7476
        6: [1958, 1989, 1975, 1934, 2018, 1947] of 1864
        7: [2879, 2878, 2878, 2879, 2878, 2879] of 2866
        8: [1991, 2037, 2081, 2087, 2192, 2075] of 1965
        9: [6051, 6051, 6051, 6051, 6051, 6051] of 6051
        10: [1870, 1837, 1852, 1926, 1824, 1932] of 1771
        11: [3116, 3115, 3115, 3116, 3115, 3116] of 3093"#]]
    .assert_eq(&makespans.collect::<Vec<_>>().join("\n"));
}
