//! Web servers whose pages are wrong, and servers that get worse: found, told by kind, and no rate.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
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

/// First its page is another, then it stands still: that is found, told once each, and ends nothing.
#[test]
fn a_server_that_degrades_is_found_out_by_passes() {
    if !has("nginx") {
        return;
    }
    let _turn = Turn::take();
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
        // It writes its title where its environment was.
        for process in running_in(&home.directory.path().display().to_string()) {
            let pid: i32 = process.split(['/', ' ']).nth(2).unwrap().parse().unwrap();
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            if name.trim() == "nginx" {
                signal(pid, Signal::STOP);
            }
        }
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
    let none = run_workload(&home, "app:web.page", "WEIGH_WEB", "fake:/no/such/socket");
    none.assert_says(&["cannot connect to the server at /no/such/socket"]);
    run_workload(&home, "app:db.point-read", "WEIGH_X", "x")
        .assert_says(&["WEIGH_DATABASE names none"]);
    fake_server(&home.path("garbage"), &[0xff; 64]);
    let garbage = format!("redis:{}", home.path("garbage").display());
    run_workload(&home, "app:kv.get-set", "WEIGH_STORE", &garbage).assert_says(&["was expected"]);
}
