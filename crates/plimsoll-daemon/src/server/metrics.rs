//! Figures for Prometheus, in its text format.
//! Never counts anything itself: they are made from how everything stands.

use std::fmt::Write;

use crate::wire::State;

/// The text.
pub(super) fn text(state: &State, events: u64) -> String {
    let mut text = String::new();
    let devices = || state.devices.iter().map(|device| [("device", device.name.as_str())]);
    let figures = |figure: fn(&crate::wire::DeviceState) -> f64| state.devices.iter().map(figure);
    let mut gauge = |name: &str, help: &str, figure: fn(&crate::wire::DeviceState) -> f64| {
        let rows = devices().map(|labels| labels.to_vec()).zip(figures(figure));
        family(&mut text, name, "gauge", help, rows.collect());
    };
    gauge("plimsoll_device_capacity_bytes", "All memory of a device.", |device| device.capacity as f64);
    gauge("plimsoll_device_line_bytes", "What may be promised of a device now.", |device| device.line as f64);
    gauge("plimsoll_device_promised_bytes", "What is promised of a device.", |device| device.promised as f64);
    gauge("plimsoll_device_members_bytes", "What of that the book allots to other programs.", |device| {
        device.members as f64
    });
    gauge("plimsoll_device_used_bytes", "What the driver says is in use.", |device| device.used as f64);
    gauge("plimsoll_device_strangers_bytes", "What programs without a lease use.", |device| device.strangers as f64);
    gauge("plimsoll_device_pressure", "The share of the line that is taken.", |device| device.pressure);
    let leases: Vec<_> = state.holders.iter().filter(|holder| holder.lease.is_some()).collect();
    let held = leases.iter().flat_map(|holder| {
        let id = holder.lease.map_or_else(String::new, |id| id.0.to_string());
        holder.portions.iter().map(move |portion| {
            let labels = vec![("lease", id.clone()), ("name", holder.name.clone()), ("device", portion.device.clone())];
            (labels, portion.promised as f64)
        })
    });
    family(&mut text, "plimsoll_lease_promised_bytes", "gauge", "What a lease is promised.", held.collect());
    let held = leases.len();
    family(&mut text, "plimsoll_leases", "gauge", "Leases that are held.", vec![(none(), held as f64)]);
    family(&mut text, "plimsoll_queue", "gauge", "Leases that wait.", vec![(none(), state.queue.len() as f64)]);
    family(&mut text, "plimsoll_warnings", "gauge", "What is wrong.", vec![(none(), state.warnings.len() as f64)]);
    family(&mut text, "plimsoll_events_total", "counter", "What has happened.", vec![(none(), events as f64)]);
    text
}

fn none() -> Vec<(&'static str, String)> {
    Vec::new()
}

fn family<V: AsRef<str>>(text: &mut String, name: &str, kind: &str, help: &str, rows: Vec<(Vec<(&str, V)>, f64)>) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in rows {
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value.as_ref()))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(text, "{name}{labels} {value}");
    }
}

/// Names come from clients.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{DeviceState, Holder, LeaseId, Portion};

    #[test]
    fn figures_have_their_names_and_labels() {
        let device = DeviceState { name: "gpu0".into(), capacity: 1 << 40, pressure: 0.25, ..DeviceState::default() };
        let portions = vec![Portion { device: "gpu0".into(), promised: 7, used: None }];
        let holder = Holder { lease: Some(LeaseId(3)), name: "a \"b\"\n".into(), portions, ..Holder::default() };
        let text = text(&State { devices: vec![device], holders: vec![holder], ..State::default() }, 12);
        for line in [
            "# TYPE plimsoll_device_capacity_bytes gauge",
            "plimsoll_device_capacity_bytes{device=\"gpu0\"} 1099511627776",
            "plimsoll_device_pressure{device=\"gpu0\"} 0.25",
            "plimsoll_lease_promised_bytes{lease=\"3\",name=\"a \\\"b\\\"\\n\",device=\"gpu0\"} 7",
            "plimsoll_leases 1",
            "plimsoll_events_total 12",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
    }
}
