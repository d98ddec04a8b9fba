//! `wrk` against our client: pages of PHP with a visit in the database each, and a page that is a file. `wrk`
//! looks at no page, and nobody counts its visits.

use std::cell::RefCell;
use std::fs;
use std::rc::Rc;

use serde_json::Value;

use super::Row;
use super::duel::{Contest, Contestant};
use super::servers::Servers;
use weigh_model::shell::command_line;

/// How long a client works in a turn.
const TURN_S: u64 = 3;
/// The script has ten views of each visitor, as our client has; a visitor brings a cookie of its own, as wrk
/// cannot take the server's.
const VIEWS: &str = r#"
local views, thread = 0, 0
function setup(t) t:set("thread", thread); thread = thread + 1 end
function init(args) math.randomseed(os.time() + thread) end
request = function()
  if views % 10 == 0 then
    local id = ""
    for i = 1, 4 do id = id .. string.format("%08x", math.random(0, 0x7fffffff)) end
    wrk.headers["Cookie"] = "lb=" .. id
  end
  views = views + 1
  return wrk.format("GET", "/page.php?run=" .. (os.getenv("RUN") + thread) .. "&n=" .. views)
end
"#;

/// Each with its servers, our workload, and how many clients there are.
const PAGES: [(&str, &str, &str, usize); 5] = [
    ("a page of PHP, nginx and php-fpm, 8 clients", "php-site", "app:web.cookie", 8),
    ("a page of PHP, Apache and mod_php, 8 clients", "apache-mod-php", "app:web.cookie", 8),
    ("a page of PHP, Apache and php-fpm, 8 clients", "apache-fpm", "app:web.cookie", 8),
    ("a page of PHP, nginx and php-fpm, 64 clients", "php-site", "app:web.cookie", 64),
    ("a file, nginx, 8 clients", "nginx", "app:web.page", 8),
];

/// All rows for which there is what it takes; of the others a sentence is printed.
pub fn rows<'a>() -> Result<Vec<Row<'a>>, String> {
    if trust::program::find("wrk")?.is_none() {
        println!("not compared with wrk, which is not installed (Debian: apt-get install wrk)");
        return Ok(Vec::new());
    }
    let mut rows = Vec::new();
    for (name, fixture, workload, clients) in PAGES {
        match Servers::of(fixture) {
            Ok(servers) => rows.push(row(name, servers, workload, clients)?),
            Err(problem) => println!("{name}: not compared: {problem}"),
        }
    }
    Ok(rows)
}

fn row<'a>(
    name: &str,
    servers: Servers,
    workload: &'static str,
    clients: usize,
) -> Result<Row<'a>, String> {
    let program = command_line([&*servers.place.executable.path().to_string_lossy()]);
    let script = servers.place.scratch.join("views.lua");
    fs::write(&script, VIEWS).map_err(|error| format!("{}: {error}", script.display()))?;
    let ours = format!(
        "exec {program} run {workload} --copies {clients} --warm-up-ms 1000 --target-ms {}",
        TURN_S * 1000
    );
    let page = match workload {
        "app:web.page" => "/page.html".to_owned(),
        _ => format!("/ -s {}", script.display()),
    };
    // The table is made by our client; the first run of wrk is its warm-up.
    let wrk = |run: u64, seconds: u64| {
        format!(
            "RUN={run} wrk -t 1 -c {clients} -d {seconds}s -H \"Host: $WEIGH_WEB_HOST\" \
             http://${{WEIGH_WEB#*:}}{page}"
        )
    };
    let theirs = format!(
        "{program} run {workload} --operations 1 >/dev/null && {} >/dev/null && exec env {}",
        wrk(5000, 1),
        wrk(6000, TURN_S)
    );
    let servers = Rc::new(RefCell::new(servers));
    let ask = |line: String, read: fn(&str) -> Result<f64, String>| -> Contestant<'a> {
        let servers = Rc::clone(&servers);
        let argv = ["sh", "-c", &line].map(String::from).to_vec();
        Box::new(move || read(&servers.borrow_mut().ask(argv.clone())?))
    };
    let contest = Contest {
        name: name.to_owned(),
        theirs: ask(theirs, rate_of_wrk),
        ours: ask(ours, rate_of_ours),
    };
    Ok(Row { contest, peer: "wrk" })
}

/// Reads the rate of a sample without a wrong page.
pub fn rate_of_ours(printed: &str) -> Result<f64, String> {
    let sample: Value =
        serde_json::from_str(printed).map_err(|error| format!("{printed}: {error}"))?;
    match (&sample["wrong"], sample["rate"].as_f64()) {
        (Value::Null, Some(rate)) => Ok(rate),
        (wrong, _) => Err(format!("our client found wrong pages: {wrong}")),
    }
}

/// Reads the rate of a run without errors, as far as wrk looks for them.
fn rate_of_wrk(printed: &str) -> Result<f64, String> {
    let is_error = |line: &&str| line.contains("Socket errors") || line.contains("Non-2xx");
    if let Some(line) = printed.lines().find(is_error) {
        return Err(format!("wrk: {}", line.trim()));
    }
    let rate = printed.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:"));
    let rate = rate.and_then(|rate| rate.trim().parse().ok());
    rate.ok_or(format!("wrk printed no rate: {printed}"))
}
