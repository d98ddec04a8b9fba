//! TCP's time-sequence chart of an abnormal cell, as the paper of 1996 reads it: how far each connection
//! had sent, how far that was acknowledged, and when the wire dropped a packet.

use minijinja::{Value, context};

use super::axis::round;
use weigh_model::format;
use weigh_model::result::net_cells::Abnormal;
use weigh_model::workload::detail::{TcpLook, WatchedConnection};

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 160.0;
const DROP_HALF: f64 = 3.0;

/// Cells that are drawn, so that a page opens at once; the table has how many there are.
const MOST: usize = 100;

/// A picture for each connection.
pub fn figures(abnormal: &[Abnormal]) -> Vec<Value> {
    abnormal.iter().take(MOST).flat_map(of_cell).collect()
}

fn of_cell(one: &Abnormal) -> Vec<Value> {
    let connections = one.connections.iter().enumerate();
    let of = |(number, connection)| figure(one, number + 1, connection);
    connections.filter_map(of).collect()
}

fn figure(one: &Abnormal, number: usize, connection: &WatchedConnection) -> Option<Value> {
    let looks = &connection.looks;
    let end_us = looks.last()?.0.max(1);
    let most = looks.iter().map(|look| look.1.max(look.2)).max()?.max(1);
    let x = |at_us: f64| round(WIDTH * (at_us / f64::from(end_us)).clamp(0.0, 1.0));
    let y = |bytes: f64| round(HEIGHT * (1.0 - (bytes / most as f64).clamp(0.0, 1.0)));
    let line = |of: fn(&TcpLook) -> u64| {
        let point = |look: &TcpLook| format!("{} {}", x(f64::from(look.0)), y(of(look) as f64));
        looks.iter().map(point).collect::<Vec<_>>().join(" ")
    };
    let drops = connection.drops_us.iter().filter(|at| **at <= u64::from(end_us)).map(|at| {
        let (x, y) = (x(*at as f64), y(sent_at(looks, *at as f64)));
        format!(
            "M{} {}L{} {}M{} {}L{} {}",
            round(x - DROP_HALF),
            round(y - DROP_HALF),
            round(x + DROP_HALF),
            round(y + DROP_HALF),
            round(x - DROP_HALF),
            round(y + DROP_HALF),
            round(x + DROP_HALF),
            round(y - DROP_HALF)
        )
    });
    // What was sent again between two looks is marked at the second.
    let again = looks.windows(2).filter(|pair| pair[1].3 > pair[0].3).map(|pair| {
        let (x, y) = (x(f64::from(pair[1].0)), y(pair[1].2 as f64));
        format!("M{x} {y}v8")
    });
    Some(context! {
        cell => format::label(&one.cell),
        bytes => format::integer(u64::from(one.bytes)),
        sweep => one.sweep,
        number => (one.connections.len() > 1).then_some(number),
        reason => one.reason(),
        rate => format::rate(one.rate, "Mb/s"),
        usual => format::rate(one.median, "Mb/s"),
        sent => line(|look| look.1),
        acknowledged => line(|look| look.2),
        drops => drops.collect::<String>(),
        again => again.collect::<String>(),
        dropped => format::integer(one.dropped),
        is_dropped => one.dropped > 0,
        has_times => !connection.drops_us.is_empty(),
        most => format!("{} KB", format::integer(most / 1000)),
        to => format::time_ns(f64::from(end_us) * 1e3),
    })
}

/// How far it had sent then, between two looks in proportion.
fn sent_at(looks: &[TcpLook], at_us: f64) -> f64 {
    let after = looks.iter().position(|look| f64::from(look.0) >= at_us).unwrap_or(looks.len() - 1);
    let (a, b) = (looks[after.saturating_sub(1)], looks[after]);
    let span = f64::from(b.0 - a.0);
    let share = if span > 0.0 { (at_us - f64::from(a.0)) / span } else { 1.0 };
    a.1 as f64 + share.clamp(0.0, 1.0) * (b.1.saturating_sub(a.1)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn abnormal(drops_us: Vec<u64>) -> Abnormal {
        let looks =
            vec![(0, 0, 0, 0, 10, 50), (1000, 2000, 1000, 0, 10, 50), (3000, 4000, 4000, 1, 5, 90)];
        Abnormal {
            cell: "2send-dr<x>".into(),
            bytes: 100,
            sweep: 2,
            rate: 5.0,
            median: 50.0,
            is_far: true,
            timeouts: 1,
            retransmissions: 1,
            dropped: drops_us.len() as u64,
            connections: vec![WatchedConnection { every_us: 1000, looks, drops_us }],
        }
    }

    #[test]
    fn a_drop_lies_where_the_stream_was_when_it_came() {
        let figures = figures(&[abnormal(vec![500, 9000])]);
        let text = |name: &str| figures[0].get_attr(name).unwrap().to_string();
        assert_eq!(text("sent"), "0 160 200 80 600 0");
        assert_eq!(text("drops"), "M97 117L103 123M97 123L103 117");
        assert_eq!(text("again"), "M600 0v8");
        assert_eq!(text("reason"), "a rate far from usual, 1 retransmission timeout");
    }

    #[test]
    fn a_connection_without_looks_has_no_picture() {
        let mut empty = abnormal(Vec::new());
        empty.connections[0].looks.clear();
        assert!(figures(&[empty]).is_empty());
    }
}
