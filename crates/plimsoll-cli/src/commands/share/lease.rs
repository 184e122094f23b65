//! `plimsoll lease`: leases by hand.

use plimsoll_daemon::client::Client;
use plimsoll_daemon::wire::{LeaseId, Request, Sort};

use super::args::{LeaseArgs, LeaseCommand, WhoArgs};
use super::{stop, who};
use crate::output;
use crate::stop::{Ended, Stop};

/// `plimsoll lease`.
pub(crate) fn run(command: &LeaseCommand) -> Ended {
    match command {
        LeaseCommand::List(args) => list(args),
        LeaseCommand::Release(args) => change(args, |lease| Request::Return { lease }),
        LeaseCommand::Pin(args) => change(args, |lease| Request::SetPinned { lease, pinned: true }),
        LeaseCommand::Unpin(args) => change(args, |lease| Request::SetPinned { lease, pinned: false }),
        LeaseCommand::Priority(args) => {
            change(&args.lease, |lease| Request::SetPriority { lease, priority: args.priority })
        }
    }
}

fn list(args: &WhoArgs) -> Ended {
    let mut state = args.socket.connect()?.state().map_err(stop)?;
    state.holders.retain(|holder| matches!(holder.sort, Sort::Lease | Sort::Engine));
    state.queue.retain(|waiting| waiting.lease.is_some());
    if args.json {
        return output::json(&(&state.holders, &state.queue));
    }
    who::holders(&state.holders)?;
    who::queue(&state.queue, state.at_ms)
}

fn change(args: &LeaseArgs, request: impl FnOnce(LeaseId) -> Request) -> Ended {
    let mut client = args.socket.connect()?;
    let lease = find(&mut client, &args.job)?;
    client.ask(&request(lease)).map_err(stop)?;
    Ok(())
}

/// The lease that a number or a name means.
pub(super) fn find(client: &mut Client, job: &str) -> Result<LeaseId, Stop> {
    if let Ok(number) = job.parse() {
        return Ok(LeaseId(number));
    }
    let state = client.state().map_err(stop)?;
    let held = state.holders.iter().filter(|holder| holder.name == job).filter_map(|holder| holder.lease);
    let waiting = state.queue.iter().filter(|waiting| waiting.name == job).filter_map(|waiting| waiting.lease);
    let found: Vec<LeaseId> = held.chain(waiting).collect();
    match found[..] {
        [one] => Ok(one),
        [] => Err(Stop::failed(format_args!("no lease is called '{job}'")).with_next("plimsoll lease list")),
        _ => {
            let numbers: Vec<String> = found.iter().map(|id| id.0.to_string()).collect();
            Err(Stop::failed(format_args!(
                "several leases are called '{job}': {}; name one by its number",
                numbers.join(", ")
            )))
        }
    }
}
