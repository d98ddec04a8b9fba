//! `weigh fleet`: machines of a list, which are this one, by an sshd of our own on the loopback.

use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;

use crate::support::sshd::{SSHD, Sshd, can_have_sshd};
use crate::support::{Home, Turn, program};
use weigh_fixture::listener::free_port;

/// Two names of one machine, and one where nobody listens.
#[test]
fn each_machine_of_a_list_has_a_result_and_what_failed_is_measured_again() {
    if !can_have_sshd() {
        return;
    }
    let _turn = Turn::share();
    let home = Home::new();
    let port = free_port(Ipv4Addr::LOCALHOST).unwrap();
    let sshd = Sshd::start(&home, ("127.0.0.1", port), Command::new(SSHD), "");
    let first = sshd.destination(&home);
    let closed = first.replace(&format!("port={port}"), "port=1");
    let list = home.file("machines", format!("# ours\n{first}\n{closed} # nobody\n"));
    let data = home.path("far");
    let far = format!(
        "env XDG_DATA_HOME={0} XDG_STATE_HOME={0} {1}",
        data.display(),
        program().display()
    );
    let results = home.path("results");
    let [list, into] = [&list, &results].map(|path| path.display().to_string());
    let run = ["run", "getppid", "--samples", "3", "--sample", "20ms"];
    let options = ["fleet", &list, "--into", &into, "--program", &far, "--"];
    let arguments = [&options[..], &run].concat();
    let outcome = home.run(&arguments);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    outcome.assert_says(&[
        "1 of 2 root@127.0.0.1-",
        "measured in",
        "2 of 2 root@127.0.0.1-1 failed: ",
        "error: 1 of 2 machines has no result",
    ]);
    let document = results.join(format!("root@127.0.0.1-{port}.json"));
    let first: serde_json::Value = serde_json::from_slice(&fs::read(&document).unwrap()).unwrap();
    assert_eq!(first["results"][0]["workload"], "getppid", "{first:#}");
    assert!(!results.join("root@127.0.0.1-1.json").exists());
    assert!(!results.join("root@127.0.0.1-1.half").exists());
    home.run(&arguments).assert_says(&["has a result already"]);
    let wrong = [&options[..], &["run", "no-such"]].concat();
    fs::remove_file(&document).unwrap();
    home.run(&wrong).assert_says(&["failed: error: ", "no-such"]);
    assert!(!document.exists());
}
