//! How COMM is told what a cell is.

use super::activity::BesideLoad;
use super::cell::{Cell, CellSize, Component, FurtherKind};
use super::grid::Grid;
use super::link::GridLink;
use weigh_testbed::{BlackBox, Via};

/// Longer than a link holds packets, and than it takes to look.
const QUIET_MS: u64 = 200;

/// The options of `comm`. `at` gives a peer's address on a way, and its control socket.
pub fn arguments(
    grid: &Grid,
    cell: &Cell,
    size: CellSize,
    copies: usize,
    at: &dyn Fn(BlackBox, Via) -> String,
) -> Vec<String> {
    let via = GridLink::via(grid.link.as_ref(), cell);
    let mut argv = vec!["--chunk".into(), cell.bytes.to_string()];
    if let Some(component) = cell.component {
        argv.extend(connections(component, size.amount, &|with| at(with, via)));
    }
    if let Some(further) = cell.further {
        argv.extend(besides(further, size.amount, &at(BlackBox::Active, via)));
        argv.extend(["--quiet-ms".into(), quiet_ms(grid).to_string()]);
    }
    if let Some(activity) = &cell.activity {
        // That it can be parsed was found out before anything was measured.
        match BesideLoad::parse(activity).ok().flatten() {
            Some(load) => argv.extend(load.arguments(size.units)),
            None => {
                argv.extend(["--beside".into(), format!("{activity}={}", size.units)]);
                argv.extend(["--beside-copies".into(), copies.to_string()]);
            }
        }
    }
    argv.extend(grid.no_delay.then(|| "--no-delay".into()));
    argv.extend(["--congestion".into(), grid.congestion.clone()]);
    let buffers = [
        ("--send-buffer", grid.send_buffer),
        ("--receive-buffer", grid.receive_buffer),
        ("--peer-send-buffer", grid.peer_send_buffer),
        ("--peer-receive-buffer", grid.peer_receive_buffer),
    ];
    for (option, bytes) in buffers {
        argv.extend(bytes.into_iter().flat_map(|n| [option.to_owned(), n.to_string()]));
    }
    argv
}

/// The payload is shared among the transfers; what does not divide goes with the first.
fn connections(
    component: Component,
    payload_bytes: u64,
    at: &dyn Fn(BlackBox) -> String,
) -> Vec<String> {
    let transfers = component.transfers();
    let shares = shares(payload_bytes, transfers.len());
    let of = |(transfer, bytes): (&super::cell::Transfer, u64)| {
        let option = if transfer.is_send { "--send" } else { "--receive" };
        [option.to_owned(), format!("{bytes},{}", at(transfer.with))]
    };
    transfers.iter().zip(shares).flat_map(of).collect()
}

fn besides(further: FurtherKind, amount: u64, at: &str) -> Vec<String> {
    let one = |option: &str, amount: u64| vec![option.to_owned(), format!("{amount},{at}")];
    match further {
        FurtherKind::Requests => one("--requests", amount),
        FurtherKind::Connects => one("--connects", amount),
        FurtherKind::Datagrams => one("--datagrams", amount),
        FurtherKind::Loaded => [one("--send", amount), vec!["--probe".into(), at.into()]].concat(),
        FurtherKind::Streams => {
            let shares = shares(amount, FurtherKind::STREAMS);
            shares.into_iter().flat_map(|bytes| one("--send", bytes)).collect()
        }
    }
}

fn shares(amount: u64, count: usize) -> Vec<u64> {
    let (share, rest) = (amount / count as u64, amount % count as u64);
    (0..count).map(|at| if at == 0 { share + rest } else { share }).collect()
}

/// After which no datagram is on the way any more.
fn quiet_ms(grid: &Grid) -> u64 {
    let link = grid.link.iter().flat_map(|link| [&link.from_test, &link.to_test]);
    QUIET_MS + link.map(|one| (one.delay_ns + one.late_ns) / 1_000_000).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::LinkSetting;

    #[test]
    fn what_is_shared_among_connections_adds_up() {
        let grid = Grid::find("quick").unwrap();
        let cell = |component, further| Cell {
            bytes: 100,
            component,
            further,
            link: LinkSetting::default(),
            activity: Some("activity-cpu".into()),
        };
        let size = CellSize { amount: 1001, units: 7 };
        let at = |with: BlackBox, via: Via| format!("{with:?}-{via:?}");
        let told = |cell: &Cell| arguments(&grid, cell, size, 2, &at).join(" ");
        let twice = told(&cell(Some(Component::TwoSendDropped), None));
        assert!(twice.contains("--send 501,Active-Wire --send 500,Passive-Wire"), "{twice}");
        assert!(twice.contains("--beside activity-cpu=7 --beside-copies 2"), "{twice}");
        let streams = told(&cell(None, Some(FurtherKind::Streams)));
        assert!(streams.contains("--send 251,Active-Lan"), "{streams}");
        assert_eq!(streams.matches("--send 250,Active-Lan").count(), 3);
        let loaded = told(&cell(None, Some(FurtherKind::Loaded)));
        assert!(loaded.contains("--send 1001,Active-Lan --probe Active-Lan"), "{loaded}");
    }
}
