//! Web servers whose pages are wrong, and servers that get worse: found, told by kind, and no rate.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::servers::{
    LONG, assert_nothing_is_left, has, open_home, running_in, servers_of, signal,
};
use crate::support::{Home, Outcome, Running, Turn, wait_until};
use rustix::process::Signal;
use serde_json::Value;

/// The server of 2003 that looked faster: most of its pages are errors, with status 200.
#[test]
fn a_site_without_connections_to_its_database_gives_no_rate() {
    if !has("php-site") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let site = "php-site:connections=10,children=24";
    let command = ["run", "app:web.cookie", "--copies", "24", "--samples", "3", "--fixture", site];
    let outcome = home.run(&command);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    let kind = "an error page with status 200";
    outcome.assert_says(&[kind, "Too many connections", "% of its answers were wrong", "a second"]);
    assert_nothing_is_left(&home);
}

/// Two sites, of which one gives wrong pages: the good pages of both are compared, as Whitcher did.
#[test]
fn good_pages_are_compared_and_the_wrong_ones_shown_by_kind() {
    if !has("php-site") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let arm = "server:mariadb.max_connections=10";
    let site = "php-site:children=24";
    let work =
        ["-w", "app:web.cookie", "--copies", "24", "--fixture", site, "--yes", "--no-detail"];
    let command = [&["compare", arm], &work[..], &["--pairs", "8"]].concat();
    let refused = home.run(&command);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    refused.assert_says(&["so it has no rate", "`--good-answers` compares the good ones"]);
    let outcome = home.run(&[&command[..], &["--good-answers", "--inconclusive-ok"]].concat());
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let json = home.json();
    assert_eq!(json["results"].as_array().map(Vec::len), Some(1), "{json}");
    assert_eq!(json["failures"], Value::Array(Vec::new()), "{json}");
    let warnings = json["warnings"].as_array().unwrap().iter().filter_map(Value::as_str);
    let of_answers: Vec<&str> =
        warnings.filter(|warning| warning.contains("of the answers were wrong")).collect();
    // The baseline's site gives no wrong page.
    let [of_answers] = of_answers[..] else { panic!("{of_answers:?}") };
    assert!(of_answers.contains(&format!("under `{arm}`: ")), "{of_answers}");
    assert!(of_answers.contains("an error page with status 200"), "{of_answers}");
    assert!(json.to_string().contains("also gave wrong answers"), "{json}");
    assert_nothing_is_left(&home);
}

/// Its processes, which write their title where their environment was.
fn nginx_of(home: &Home) -> Vec<i32> {
    let is_nginx = |pid: &i32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "nginx")
    };
    let processes = running_in(&home.directory.path().display().to_string()).into_iter();
    let pids = processes.filter_map(|process| process.split(['/', ' ']).nth(2)?.parse().ok());
    pids.filter(is_nginx).collect()
}

/// First its page is another, then it stands still: that is found, told once each, and ends nothing.
#[test]
fn a_server_that_degrades_is_found_out_by_passes() {
    if !has("nginx") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let command = ["run", "app:web.page@nginx", "--clients", "2", "--for", "6s", "--pass", "2s"];
    let mut running = home.start(home.weigh(&command));
    let says = |part: &str, running: &Running| {
        assert!(wait_until(LONG, || running.said().contains(part)), "{part}: {}", running.said());
    };
    says("pass 1 of 3", &running);
    let find = Command::new("find").arg(home.path("tmp")).args(["-name", "page.html"]).output();
    let found = String::from_utf8(find.unwrap().stdout).unwrap();
    let page = found.lines().next().expect("nginx has its page");
    fs::write(page, [b'x'; 5000]).unwrap();
    says("the first wrong answer came", &running);
    let stop = || {
        nginx_of(&home).into_iter().for_each(|pid| signal(pid, Signal::STOP));
        running.has_ended() || running.said().contains("the first hang came")
    };
    assert!(wait_until(LONG, stop), "{}", running.said());
    let outcome = running.finish();
    outcome.assert_says(&["other bytes", "no answer in 10 s", "pass 3 of 3"]);
    let json = home.json();
    assert!(json["facts"].to_string().contains("pass 3 of 3"), "{json}");
    // Whether it stood still when it was asked to end is chance.
    let told = format!("{}{}", json["facts"], json["warnings"]);
    assert!(
        told.contains("1 server exited when") || told.contains("1 of 1 server did not exit"),
        "{told}"
    );
    assert_nothing_is_left(&home);
}

/// It is not started anew for the passes that are left, whatever they would say.
#[test]
fn a_server_that_dies_ends_its_passes() {
    if !has("nginx") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let command = ["run", "app:web.page@nginx", "--for", "600s", "--pass", "2s"];
    let mut running = home.start(home.weigh(&command));
    assert!(wait_until(LONG, || running.said().contains("pass 1 of 300")), "{}", running.said());
    let kill = || {
        nginx_of(&home).into_iter().for_each(|pid| signal(pid, Signal::KILL));
        running.has_ended()
    };
    assert!(wait_until(LONG, kill), "{}", running.said_and_waits());
    let outcome = running.finish();
    outcome.assert_says(&["the run failed: ", "of 300; the remaining passes are skipped"]);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    let json = home.json();
    // What was measured until then is there.
    assert_eq!(json["results"].as_array().map(Vec::len), Some(1), "{json}");
    let last =
        json["facts"].as_array().unwrap().iter().rev().find_map(|fact| {
            fact.as_str().filter(|fact| fact.contains(", pass ")).map(str::to_owned)
        });
    assert!(
        last.as_ref().is_some_and(|line| line.contains("number of wrong answers unknown")),
        "{last:?}"
    );
    assert_nothing_is_left(&home);
}

/// A run of two hours that has no number was a success to the script that began it.
#[test]
fn a_server_that_dies_in_the_first_pass_gives_no_result() {
    if !has("nginx") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let command = ["run", "app:web.page@nginx", "--for", "600s", "--pass", "20s"];
    let mut running = home.start(home.weigh(&command));
    // The first one is for the look at all workloads.
    let mut seen = Vec::new();
    let is_second = || {
        let now = nginx_of(&home);
        if seen.is_empty() {
            seen.clone_from(&now);
        }
        now.len() > 1 && now.iter().all(|pid| !seen.contains(pid))
    };
    assert!(wait_until(LONG, is_second), "{}", running.said());
    thread::sleep(Duration::from_secs(2));
    let kill = || {
        nginx_of(&home).into_iter().for_each(|pid| signal(pid, Signal::KILL));
        running.has_ended()
    };
    assert!(wait_until(LONG, kill), "{}", running.said_and_waits());
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    outcome.assert_says(&["there is no result for app:web.page", "no pass had a good answer"]);
    assert_nothing_is_left(&home);
}

#[test]
fn what_asks_no_server_has_no_capacity_and_nothing_to_endure() {
    let home = Home::new();
    let refused =
        |words: &[&str], part: &str| home.run(&[&["run"], words].concat()).assert_error(&[part]);
    refused(
        &["load:shared:users=2", "--capacity", "p99=1s"],
        "`load:shared:users=2` sends no requests to a server, so --capacity",
    );
    refused(
        &["getppid", "--for", "10s"],
        "`getppid` sends no requests to a server, so --for does not apply",
    );
    refused(
        &["app:web.page", "--for", "10s", "--pass", "20s"],
        "--pass 20 s is longer than --for 10 s",
    );
    refused(
        &["app:web.page", "--for", "2h", "--pass", "20m"],
        "takes a time from a second to 10 minutes",
    );
}

/// Runs a workload against a server that the test keeps for it.
fn run_workload(home: &Home, name: &str, variable: &str, address: &str) -> Outcome {
    let program = home.workloads();
    let mut command = home.command(program);
    command.args(["run", name, "--target-ms", "1000"]).env(variable, address);
    home.start(command).finish()
}

/// A web server that answers each request with this; it takes 100 ms for each at first, for so long.
fn fake_server(socket: &Path, answer: &'static [u8], is_slow_for: Duration) {
    let listener = UnixListener::bind(socket).unwrap();
    thread::spawn(move || {
        let began = OnceLock::new();
        let began: &'static OnceLock<Instant> = Box::leak(Box::new(began));
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || {
                let mut request = [0; 4096];
                while stream.read(&mut request).is_ok_and(|size| size > 0) {
                    if began.get_or_init(Instant::now).elapsed() < is_slow_for {
                        thread::sleep(Duration::from_millis(100));
                    }
                    if answer.is_empty() || stream.write_all(answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
}

#[test]
fn a_wrong_page_gives_no_rate_however_fast_it_came() {
    let home = Home::new();
    let says_after = |slow: Duration, name: &str, answer: &'static [u8], kind: &str, part: &str| {
        let socket = home.path(name);
        fake_server(&socket, answer, slow);
        let address = format!("fake:{}", socket.display());
        let outcome = run_workload(&home, "app:web.page", "WEIGH_WEB", &address);
        assert!(outcome.stdout.starts_with("{"), "{outcome:#?}");
        let sample: Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!(sample["operations"], 0, "{outcome:#?}");
        assert_eq!(sample["wrong"][0]["kind"], kind, "{outcome:#?}");
        assert_eq!(sample["wrong"][0]["count"], sample["total_operations"], "{outcome:#?}");
        let example = sample["wrong"][0]["example"].as_str().unwrap();
        assert!(example.contains(part), "{example}");
    };
    let says = |name: &str, answer, kind: &str, part: &str| {
        says_after(Duration::ZERO, name, answer, kind, part);
    };
    let gateway = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n";
    // The warm-up foretells batches that are too short: what was wrong in them is not of the sample.
    let warm_up = Duration::from_millis(150);
    says_after(warm_up, "slow", gateway, "another status than 200", "502 Bad Gateway");
    says("status", gateway, "another status than 200", "502 Bad Gateway");
    let short = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno";
    says("short", short, "other bytes", "a page of 2 bytes");
    says("gone", b"", "connection closed", "closed the connection");
    let unending = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n";
    says("chunks", unending, "a malformed answer", "as the size of a chunk");
    let wrong: &'static [u8] = Box::leak(
        [&b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"[..], &[b'x'; 5000]]
            .concat()
            .into_boxed_slice(),
    );
    says("wrong", wrong, "other bytes", "5000 bytes");
    let full = UnixListener::bind(home.path("full")).unwrap();
    rustix::net::listen(&full, 0).unwrap();
    let waiting = UnixStream::connect(home.path("full")).unwrap();
    let address = format!("fake:{}", home.path("full").display());
    run_workload(&home, "app:web.page", "WEIGH_WEB", &address)
        .assert_says(&["no answer within 10 s (its queue is full, or a firewall blocks it)"]);
    drop(waiting);
    let none = run_workload(&home, "app:web.page", "WEIGH_WEB", "fake:/no/such/socket");
    none.assert_says(&["cannot connect to the server at /no/such/socket"]);
    run_workload(&home, "app:db.point-read", "WEIGH_X", "x")
        .assert_says(&["set WEIGH_DATABASE to KIND:ADDRESS"]);
    fake_server(&home.path("garbage"), &[0xff; 64], Duration::ZERO);
    let garbage = format!("redis:{}", home.path("garbage").display());
    run_workload(&home, "app:kv.get-set", "WEIGH_STORE", &garbage).assert_says(&["was expected"]);
}

/// A mix prints no kinds of wrong answers, and counted such a job as done.
#[test]
fn a_job_of_a_mix_whose_page_is_wrong_is_a_failure() {
    let home = Home::new();
    let socket = home.path("wrong");
    fake_server(&socket, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", Duration::ZERO);
    let mut command = home.command(home.workloads());
    command.args(["load", "--users", "2", "app:web.page=3"]);
    command.env("WEIGH_WEB", format!("fake:{}", socket.display()));
    let outcome = home.start(command).finish();
    assert_eq!(outcome.code, Some(1), "{outcome:#?}");
    outcome.assert_says(&["3 of its answers were wrong, one of them: a page of 2 bytes"]);
}

/// A file of this name below a directory; without find(1), as what is forked holds what others just write.
fn found(place: PathBuf, name: &str) -> Option<PathBuf> {
    let mut open = vec![place];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                _ if entry.file_name() == name => return Some(entry.path()),
                _ => {}
            }
        }
    }
    None
}

/// The port that a configuration of this name gives away, to root.
fn port_in(home: &Home, file: &str, word: &str) -> Option<u16> {
    port_of(&fs::read_to_string(found(home.path("tmp"), file)?).ok()?, word)
}

fn port_of(configuration: &str, word: &str) -> Option<u16> {
    let (_, rest) = configuration.split_once(word)?.1.split_once("127.0.0.1:")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// As our own client asks an Apache.
fn get_as_ours(home: &Home, path: &str) -> Option<String> {
    let text = fs::read_to_string(found(home.path("tmp"), "httpd.conf")?).ok()?;
    let host = text.rsplit_once("ServerName ")?.1.lines().next()?;
    Some(get(port_of(&text, "Listen")?, path, &format!("Host: {host}\r\n")))
}

fn get(port: u16, path: &str, headers: &str) -> String {
    let mut answer = String::new();
    let asked = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).and_then(|mut stream| {
        write!(stream, "GET {path} HTTP/1.0\r\n{headers}\r\n")?;
        stream.read_to_string(&mut answer)
    });
    asked.map_or_else(|error| error.to_string(), |_| answer)
}

/// Tests that servers get nothing from root's shell: other processes of their user can read what
/// they have.
#[test]
fn servers_have_nothing_of_roots_shell_and_publish_their_page_alone() {
    if !has("apache") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let secret = home.file("secret", "");
    let mut command = home.command("sh");
    command.args(["-c", "exec \"$@\" 9<secret", "sh"]).arg(crate::support::program());
    command.args(["run", "app:web.page@apache-prefork", "--samples", "100", "--sample", "300ms"]);
    let mut running = home.start({
        command.env("SECRET_X", "of root's shell");
        command
    });
    let is_served =
        || get_as_ours(&home, "/page.html").is_some_and(|answer| answer.contains("200 OK"));
    assert!(wait_until(LONG, || is_served() || running.has_ended()), "{}", running.said());
    // Those of the look at all workloads may just have ended.
    let environments = || {
        let read =
            |pid: i32, file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let servers = servers_of(&home, "apache2").into_iter();
        let both = servers.map(|pid| [text(read(pid, "environ")), text(read(pid, "status"))]);
        both.filter(|both| both.iter().all(|text| !text.is_empty())).collect::<Vec<_>>()
    };
    assert!(wait_until(LONG, || !environments().is_empty()), "{}", running.said());
    for [environment, status] in environments() {
        assert!(environment.contains("PATH=") && !environment.contains("SECRET_X"));
        assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    }
    let has_it = |pid: &i32| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_link(file.path()).ok()).any(|file| file == secret)
    };
    // A child of it has the file until it executes its program, and its command line.
    let line = |pid: i32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let is_child = |pid: &i32| *pid != running.pid() && line(*pid) == line(running.pid());
    let mut holders: Vec<i32> = home.processes().into_iter().filter(has_it).collect();
    holders.retain(|pid| !is_child(pid));
    assert_eq!(holders, [running.pid()], "its own file, for /dev/fd/9, and nobody else's");
    for path in ["/httpd.conf", "/php.ini", "/log", "/page.php", "/own/errors"] {
        let mut answer = String::new();
        let is_answered = || {
            answer = get_as_ours(&home, path).unwrap_or_default();
            answer.starts_with("HTTP/")
        };
        assert!(wait_until(LONG, is_answered), "{path}: {answer}");
        assert!(answer.contains("404 Not Found"), "{path}: {answer}");
    }
    let mode = || Some(fs::metadata(found(home.path("tmp"), "httpd.conf")?).ok()?.mode() & 0o777);
    let mut seen = None;
    assert!(wait_until(LONG, || {
        seen = mode();
        seen.is_some()
    }));
    assert_eq!(seen, Some(0o640));
    signal(running.pid(), Signal::INT);
    assert_eq!(running.finish().code, Some(130));
    assert_nothing_is_left(&home);
}

#[test]
fn a_visit_of_a_stranger_is_found_whatever_number_it_has() {
    if !has("php-site") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let command = ["run", "app:web.cookie@nginx-fpm", "--samples", "3", "--sample", "1s"];
    let mut running = home.start(home.weigh(&command));
    let mut visits = 0;
    while !running.has_ended() {
        if let Some(port) = port_in(&home, "nginx.conf", "listen") {
            visits += 1;
            get(port, &format!("/page.php?run=12345&n={visits}"), "");
        }
        thread::sleep(Duration::from_millis(20));
    }
    running.finish().assert_says(&["a visit in the database that nobody made"]);
    assert_nothing_is_left(&home);
}

/// Each arm has a port of its own, so it would slow one of them.
#[test]
fn a_stranger_who_asks_for_the_page_is_found() {
    if !has("nginx") || !has("apache") {
        return;
    }
    let _turn = Turn::share();
    for (server, file, word) in
        [("nginx", "nginx.conf", "listen"), ("apache-event", "httpd.conf", "Listen")]
    {
        let home = open_home();
        let workload = format!("app:web.page@{server}");
        let command = ["run", &workload, "--samples", "3", "--sample", "1s"];
        let mut running = home.start(home.weigh(&command));
        while !running.has_ended() {
            port_in(&home, file, word).map(|port| get(port, "/page.html", ""));
            thread::sleep(Duration::from_millis(20));
        }
        let outcome = running.finish();
        assert_eq!(outcome.code, Some(2), "{outcome:#?}");
        outcome.assert_says(&["a request that somebody else made", "so it has no rate"]);
        assert_nothing_is_left(&home);
    }
}

/// Its database starts before it: time enough for whoever knows the port.
#[test]
fn a_port_that_somebody_takes_first_is_given_up_for_another() {
    if !has("php-site") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let command = ["run", "app:web.cookie@nginx-fpm", "--samples", "3"];
    let mut running = home.start(home.weigh(&command));
    let mut taken = None;
    while taken.is_none() && !running.has_ended() {
        let port = port_in(&home, "nginx.conf", "listen");
        taken = port.and_then(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok());
    }
    let outcome = running.finish();
    assert!(taken.is_some(), "{outcome:#?}");
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert_nothing_is_left(&home);
}
