//! `sysbench` and `pgbench` against our client: the same statements, as text, over one connection for each
//! client. Neither looks whether a row is the one that it asked for, and nobody counts their rows.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use super::Row;
use super::duel::{Contest, Contestant};
use super::servers::Servers;
use super::web::rate_of_ours;
use weigh_model::shell::command_line;

/// How long a client works in a turn.
const TURN_S: u64 = 3;
/// Warm-up of the peer, as ours works for so long before it is timed.
const WARM_UP_S: u64 = 1;

/// The loop of 2003 as sysbench has it; ours has made the table.
const RANDOM_INSERT: &str = r#"
function thread_init()
  connection = sysbench.sql.driver():connect()
end
function event()
  local key = sysbench.rand.uniform(0, 262143)
  local found = connection:query("SELECT rindex,time,rdata FROM random WHERE rindex=" .. key)
  if found.nrows == 0 then
    connection:query("INSERT INTO random VALUES (" .. key .. ", " .. os.time() ..
                     ", 'Just another row in the table')")
  end
end
"#;
const POINT_READ: &str = r"\set key random(0, 9999)
SELECT id, content FROM point_:client_id WHERE id=:key;
";
const TRANSACTION: &str = r"\set account random(0, 9999)
\set amount random(-998, 1001)
BEGIN;
UPDATE accounts_:client_id SET balance = balance + :amount WHERE id = :account;
SELECT balance FROM accounts_:client_id WHERE id = :account;
INSERT INTO history_:client_id VALUES (:account, :amount);
COMMIT;
";

struct Peer {
    name: &'static str,
    package: &'static str,
    /// Text of the script that it runs.
    script: &'static str,
    /// Its command line, with CLIENTS, SECONDS and SCRIPT to be filled.
    command: &'static str,
    read: fn(&str) -> Result<f64, String>,
}

const SYSBENCH: Peer = Peer {
    name: "sysbench",
    package: "sysbench",
    script: RANDOM_INSERT,
    command: "sysbench SCRIPT --db-driver=mysql --db-ps-mode=disable --mysql-user=root --mysql-db=weigh \
              --mysql-socket=${WEIGH_DATABASE#*:} --mysql-ignore-errors=1062 --threads=CLIENTS \
              --events=0 --time=SECONDS run",
    read: rate_of_sysbench,
};

const fn pgbench(script: &'static str) -> Peer {
    Peer {
        name: "pgbench",
        package: "postgresql",
        script,
        command: "socket=${WEIGH_DATABASE#*:} && pgbench -n -M simple -h ${socket%/*} -U bench -f SCRIPT \
                  -c CLIENTS -j CLIENTS -T SECONDS postgres",
        read: rate_of_pgbench,
    }
}

/// Contests: a title, the fixture, our workload and the peer that it is compared with.
const KINDS: [(&str, &str, &str, Peer); 5] = [
    ("random inserts, MariaDB, durable", "mariadb", "app:db.random-insert-shared", SYSBENCH),
    (
        "random inserts, MariaDB, relaxed",
        "mariadb:relaxed",
        "app:db.random-insert-shared",
        SYSBENCH,
    ),
    ("point reads, PostgreSQL", "postgres", "app:db.point-read", pgbench(POINT_READ)),
    ("transactions, PostgreSQL, durable", "postgres", "app:db.transaction", pgbench(TRANSACTION)),
    (
        "transactions, PostgreSQL, relaxed",
        "postgres:relaxed",
        "app:db.transaction",
        pgbench(TRANSACTION),
    ),
];

/// All rows for which there is what it takes; of the others a sentence is printed.
pub fn rows<'a>() -> Result<Vec<Row<'a>>, String> {
    let mut rows = Vec::new();
    for (what, fixture, workload, peer) in KINDS {
        if trust::program::find(peer.name)?.is_none() {
            println!(
                "{what}: not compared with {}, which is not installed (Debian: apt-get install {})",
                peer.name, peer.package
            );
            continue;
        }
        for clients in [1, 4] {
            let name =
                format!("{what}, {clients} {}", if clients == 1 { "client" } else { "clients" });
            match Servers::of(fixture) {
                Ok(servers) => rows.push(row(name, servers, workload, &peer, clients)?),
                Err(problem) => println!("{name}: not compared: {problem}"),
            }
        }
    }
    Ok(rows)
}

fn row<'a>(
    name: String,
    servers: Servers,
    workload: &str,
    peer: &Peer,
    clients: usize,
) -> Result<Row<'a>, String> {
    let program = command_line([&*servers.place.executable.path().to_string_lossy()]);
    let script = servers.place.scratch.join("script");
    fs::write(&script, peer.script).map_err(|error| format!("{}: {error}", script.display()))?;
    let ours = format!(
        "exec {program} run {workload} --copies {clients} --warm-up-ms {} --target-ms {}",
        WARM_UP_S * 1000,
        TURN_S * 1000
    );
    let command = |seconds| filled(peer.command, clients, seconds, &script);
    // The tables are made by our client; the first run of theirs is its warm-up.
    let theirs = format!(
        "{program} run {workload} --copies {clients} --operations 1 >/dev/null && {} >/dev/null && {}",
        command(WARM_UP_S),
        command(TURN_S)
    );
    let servers = Rc::new(RefCell::new(servers));
    let ask = |line: String, read: fn(&str) -> Result<f64, String>| -> Contestant<'a> {
        let servers = Rc::clone(&servers);
        let argv = ["sh", "-c", &line].map(String::from).to_vec();
        Box::new(move || read(&servers.borrow_mut().ask(argv.clone())?))
    };
    let contest = Contest { name, theirs: ask(theirs, peer.read), ours: ask(ours, rate_of_ours) };
    Ok(Row { contest, peer: peer.name })
}

fn filled(command: &str, clients: usize, seconds: u64, script: &Path) -> String {
    command
        .replace("CLIENTS", &clients.to_string())
        .replace("SECONDS", &seconds.to_string())
        .replace("SCRIPT", &command_line([&*script.to_string_lossy()]))
}

/// Events over the time that it took.
fn rate_of_sysbench(printed: &str) -> Result<f64, String> {
    let value = |name: &str| {
        let line = printed.lines().find_map(|line| line.trim().strip_prefix(name))?;
        line.trim().trim_end_matches('s').parse::<f64>().ok()
    };
    let rate = value("total number of events:").zip(value("total time:"));
    rate.map(|(events, seconds)| events / seconds)
        .ok_or_else(|| format!("sysbench printed no rate: {printed}"))
}

fn rate_of_pgbench(printed: &str) -> Result<f64, String> {
    let rate = printed.lines().find_map(|line| line.strip_prefix("tps = "));
    let rate = rate.and_then(|rate| rate.split(' ').next()?.parse().ok());
    rate.ok_or_else(|| format!("pgbench printed no rate: {printed}"))
}
