//! Web servers whose pages are wrong, and servers that get worse: found, told by kind, and no rate.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::thread;

use rustix::process::Signal;
use serde_json::Value;
use support::servers::{LONG, assert_nothing_is_left, has, open_home, running_in, signal};
use support::{Home, Outcome, Running, Turn, wait_until};

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
    assert!(told.contains("of 1 servers"), "{told}");
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
    assert!(wait_until(LONG, kill), "{}", running.said());
    let outcome = running.finish();
    outcome
        .assert_says(&["the run failed: ", "of 300 its servers ended, and no other pass is taken"]);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    let json = home.json();
    // What was measured until then is there.
    assert_eq!(json["results"].as_array().map(Vec::len), Some(1), "{json}");
    let last =
        json["facts"].as_array().unwrap().iter().rev().find_map(|fact| {
            fact.as_str().filter(|fact| fact.contains(", pass ")).map(str::to_owned)
        });
    assert!(
        last.as_ref().is_some_and(|line| line.contains("how many were wrong is not known")),
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
    thread::sleep(std::time::Duration::from_secs(2));
    let kill = || {
        nginx_of(&home).into_iter().for_each(|pid| signal(pid, Signal::KILL));
        running.has_ended()
    };
    assert!(wait_until(LONG, kill), "{}", running.said());
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    outcome.assert_says(&[
        "there is no result for app:web.page",
        "in no pass was there a good answer",
    ]);
    assert_nothing_is_left(&home);
}

#[test]
fn what_asks_no_server_has_no_capacity_and_nothing_to_endure() {
    let home = Home::new();
    let refused =
        |words: &[&str], part: &str| home.run(&[&["run"], words].concat()).assert_error(&[part]);
    refused(
        &["load:shared:users=2", "--capacity", "p99=1s"],
        "`load:shared:users=2` asks no server, and --capacity",
    );
    refused(
        &["getppid", "--for", "10s"],
        "`getppid` asks no server, and --for is for workloads that do",
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

/// What a workload says of a server that the test keeps for it.
fn run_workload(home: &Home, name: &str, variable: &str, address: &str) -> Outcome {
    let program = home.workloads();
    let mut command = home.command(program);
    command.args(["run", name, "--target-ms", "1000"]).env(variable, address);
    home.start(command).finish()
}

/// A web server that answers each request with this.
fn fake_server(socket: &Path, answer: &'static [u8]) {
    let listener = UnixListener::bind(socket).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || {
                let mut request = [0; 4096];
                while stream.read(&mut request).is_ok_and(|size| size > 0) {
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
    let says = |name: &str, answer: &'static [u8], kind: &str, part: &str| {
        let socket = home.path(name);
        fake_server(&socket, answer);
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
    let gateway = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n";
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
        .assert_says(&["nobody answered within 10 s (a full queue, or a firewall in between)"]);
    drop(waiting);
    let none = run_workload(&home, "app:web.page", "WEIGH_WEB", "fake:/no/such/socket");
    none.assert_says(&["cannot connect to the server at /no/such/socket"]);
    run_workload(&home, "app:db.point-read", "WEIGH_X", "x")
        .assert_says(&["WEIGH_DATABASE names none"]);
    fake_server(&home.path("garbage"), &[0xff; 64]);
    let garbage = format!("redis:{}", home.path("garbage").display());
    run_workload(&home, "app:kv.get-set", "WEIGH_STORE", &garbage).assert_says(&["was expected"]);
}
