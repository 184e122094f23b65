//! `plimsoll who`: who holds how much of which device, who waits, and what strangers use.
//! Never wider than the terminal.

use comfy_table::{Cell, CellAlignment};
use plimsoll_core::Bytes;
use plimsoll_daemon::wire::{Holder, Kind, Phase, Sort, State, Urgency, Waiting};

use super::args::WhoArgs;
use crate::output::{self, bad, clean, faint, good, line, print_table, table};
use crate::stop::Ended;

/// `plimsoll who`.
pub(crate) fn run(args: &WhoArgs) -> Ended {
    let state = args.socket.connect()?.state().map_err(super::stop)?;
    if args.json {
        return output::json(&state);
    }
    devices(&state)?;
    line("")?;
    holders(state.holders.iter())?;
    queue(&state.queue)?;
    for warning in &state.warnings {
        crate::stop::warn(warning);
    }
    Ok(())
}

fn devices(state: &State) -> Ended {
    let mut rows = table(&[
        ("device", CellAlignment::Left),
        ("promised", CellAlignment::Right),
        ("line", CellAlignment::Right),
        ("used", CellAlignment::Right),
        ("strangers", CellAlignment::Right),
        ("memory", CellAlignment::Right),
        ("pressure", CellAlignment::Left),
    ]);
    for device in &state.devices {
        let pressure = format!("{:.0} % {}", device.pressure * 100.0, device.level);
        rows.add_row([
            Cell::new(clean(&device.name)),
            Cell::new(Bytes(device.promised)),
            Cell::new(Bytes(device.line)),
            Cell::new(Bytes(device.used)),
            Cell::new(Bytes(device.strangers)),
            Cell::new(Bytes(device.capacity)),
            match device.level.as_str() {
                "high" | "critical" => bad(pressure),
                _ => good(pressure),
            },
        ]);
    }
    match state.devices.is_empty() {
        true => line("no device is known: no driver has answered"),
        false => print_table(&rows),
    }
}

/// A table of leases and strangers.
pub(super) fn holders<'a>(holders: impl Iterator<Item = &'a Holder>) -> Ended {
    let mut rows = table(&[
        ("lease", CellAlignment::Right),
        ("holder", CellAlignment::Left),
        ("pid", CellAlignment::Right),
        ("kind", CellAlignment::Left),
        ("on", CellAlignment::Left),
        ("promised", CellAlignment::Right),
        ("used", CellAlignment::Right),
        ("quality", CellAlignment::Left),
    ]);
    let mut is_empty = true;
    for holder in holders {
        is_empty = false;
        let on: Vec<_> = holder.portions.iter().map(|portion| portion.device.as_str()).collect();
        let promised = Bytes(holder.portions.iter().map(|portion| portion.promised).sum());
        let used: Option<u64> = holder.portions.iter().map(|portion| portion.used).sum();
        let is_over = used.is_some_and(|used| used > promised.0) && holder.sort != Sort::Stranger;
        let used = used.map_or_else(|| "?".to_owned(), |used| Bytes(used).to_string());
        rows.add_row([
            Cell::new(holder.lease.map_or_else(|| "–".to_owned(), |id| id.0.to_string())),
            Cell::new(clean(&holder.name)),
            Cell::new(holder.pid.map_or_else(|| "?".to_owned(), |pid| pid.to_string())),
            Cell::new(what_for(holder)),
            Cell::new(clean(on.join("+"))),
            if holder.sort == Sort::Stranger { faint("–") } else { Cell::new(promised) },
            if is_over { bad(used) } else { Cell::new(used) },
            standing(holder),
        ]);
    }
    match is_empty {
        true => line("nobody holds anything"),
        false => print_table(&rows),
    }
}

fn what_for(holder: &Holder) -> String {
    match holder.sort {
        Sort::Stranger => "stranger".to_owned(),
        Sort::Engine => format!("engine {}", urgency(holder.priority)),
        Sort::Member => "member".to_owned(),
        Sort::Lease => format!("{} {}", kind(holder.kind), urgency(holder.priority)),
    }
}

fn standing(holder: &Holder) -> Cell {
    let quality = format!("{:.0} %", holder.quality * 100.0);
    let pinned = if holder.pinned { " pinned" } else { "" };
    match (holder.sort, holder.phase) {
        (Sort::Stranger, _) => faint("–"),
        (Sort::Member, _) => faint("by the book"),
        (_, Phase::Recalled) => bad(format!("{quality} asked back")),
        (_, Phase::Returning) => faint("given back"),
        (_, Phase::Held) => Cell::new(format!("{quality}{pinned}")),
    }
}

/// Who waits.
pub(super) fn queue(queue: &[Waiting]) -> Ended {
    if queue.is_empty() {
        return Ok(());
    }
    line("")?;
    let mut rows = table(&[
        ("waits", CellAlignment::Right),
        ("who", CellAlignment::Left),
        ("kind", CellAlignment::Left),
        ("needs", CellAlignment::Right),
        ("because", CellAlignment::Left),
    ]);
    for waiting in queue {
        rows.add_row([
            Cell::new(waiting.lease.map_or_else(String::new, |id| id.0.to_string())),
            Cell::new(clean(&waiting.name)),
            Cell::new(format!("{} {}", kind(waiting.kind), urgency(waiting.priority))),
            Cell::new(Bytes(waiting.bytes)),
            Cell::new(clean(&waiting.reason)),
        ]);
    }
    print_table(&rows)
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Llm => "llm",
        Kind::Image => "image",
        Kind::Video => "video",
        Kind::Batch => "batch",
        Kind::Other => "other",
    }
}

fn urgency(urgency: Urgency) -> &'static str {
    match urgency {
        Urgency::Background => "background",
        Urgency::Low => "low",
        Urgency::Normal => "normal",
        Urgency::High => "high",
        Urgency::Critical => "critical",
    }
}
