//! `plimsoll why` and `plimsoll events`: what the daemon says of one lease, and of everything.

use std::time::{Duration, UNIX_EPOCH};

use plimsoll_daemon::wire::{Event, Request, Say};

use super::args::{EventsArgs, WhyArgs};
use super::{lease, stop};
use crate::output::{clean_line, line};
use crate::stop::{Ended, Stop};

/// `plimsoll why`.
pub(crate) fn why(args: &WhyArgs) -> Ended {
    let mut client = args.socket.connect()?;
    let lease = lease::find(&mut client, &args.job)?;
    match client.ask(&Request::Why { lease }).map_err(stop)? {
        Say::Why { because, .. } => because.iter().try_for_each(|sentence| line(clean_line(sentence))),
        _ => Err(Stop::failed("the daemon gave no reason")),
    }
}

/// `plimsoll events`.
pub(crate) fn events(args: &EventsArgs) -> Ended {
    let mut client = args.socket.connect()?;
    if !args.follow {
        return client.events(args.since).map_err(stop)?.iter().try_for_each(|event| show(event, args.json));
    }
    client.send(&Request::Events { since: args.since, follow: true }).map_err(stop)?;
    loop {
        if let Some(Say::Event(event)) = client.hear(None).map_err(stop)? {
            show(&event, args.json)?;
        }
    }
}

fn show(event: &Event, json: bool) -> Ended {
    match json {
        true => line(serde_json::to_string(event).map_err(Stop::failed)?),
        false => line(clean_line(format_args!("{}  {:<9}  {}", time(event.at_ms), event.what, event.text))),
    }
}

/// The time of day, in UTC: what is looked for is seldom older.
pub(super) fn time(at_ms: u64) -> String {
    let since = UNIX_EPOCH + Duration::from_millis(at_ms);
    let seconds = since.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (hours, minutes, seconds) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{hours:02}:{minutes:02}:{seconds:02}.{:03}", at_ms % 1_000)
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_are_those_of_the_day() {
        assert_eq!(super::time(1_700_000_000_123), "22:13:20.123");
    }
}
