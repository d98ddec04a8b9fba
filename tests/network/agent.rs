//! `weigh agent`: who does not have its token gets nothing, whatever is sent and however often, and nothing
//! is started for it; who has it has one experiment at a time.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::support::processes::{Held, signal};
use crate::support::{Home, NOBODY, Running, is_root, skip, wait_until};
use channel::{Channel, Secret};
use rand::{RngExt, SeedableRng};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use weigh::far::dial::{Dialled, dial};
use weigh::far::{CallFor, Hello, Premises, VERSION, Welcome, new_experiment, read_secret};

/// More than an agent waits for anybody.
const LONG: Duration = Duration::from_secs(40);

/// An agent on the loopback interface.
struct Agent {
    home: Home,
    running: Running,
    address: String,
    token: PathBuf,
}

impl Agent {
    fn start() -> Agent {
        let home = Home::new();
        let token = home.path("token");
        home.succeed(&["agent", "--new-token", token.to_str().unwrap()]);
        let arguments = ["agent", "--listen", "127.0.0.1:0", "--token-file", "token"];
        let running = home.start(home.weigh(&arguments));
        let listens = || running.said().contains("Ctrl-C ends it");
        assert!(wait_until(LONG, listens), "{}", running.said());
        let said = running.said();
        let address = said.split_whitespace().find(|word| word.starts_with("127.0.0.1:")).unwrap();
        let address = address.trim_end_matches(';').to_owned();
        Agent { home, running, address, token }
    }

    fn secret(&self) -> Secret {
        read_secret(&self.token).unwrap()
    }

    fn call(&self, wants: CallFor, experiment: &str) -> Result<Dialled, String> {
        let hello = Hello { version: VERSION.into(), experiment: experiment.into(), wants };
        dial(&self.address, &self.secret(), &hello)
    }

    /// Begins an experiment, which ends with the connection.
    fn begin(&self) -> (Dialled, Premises, String) {
        let experiment = new_experiment().unwrap();
        let dialled = self.call(CallFor::Experiment, &experiment).unwrap();
        let Welcome::Experiment(premises) = dialled.welcome.clone() else {
            panic!("{:?}", dialled.welcome)
        };
        (dialled, *premises, experiment)
    }

    /// Itself, and nothing that it started.
    #[track_caller]
    fn assert_alone(&self) {
        let is_alone = || self.home.processes() == [self.running.pid()];
        assert!(wait_until(LONG, is_alone), "{:?}", self.home.describe_processes());
        assert_eq!(self.home.leftovers(), Vec::<PathBuf>::new());
    }

    fn begun(&self) -> usize {
        self.running.said().matches("an experiment begins").count()
    }

    /// It still serves who has the token, and ends in good order.
    fn end(self) {
        let (connection, ..) = self.begin();
        drop(connection);
        self.assert_alone();
        signal(self.running.pid(), Signal::INT);
        let outcome = self.running.finish();
        assert_eq!(outcome.code, Some(130), "{outcome:#?}");
        outcome.assert_says(&[]);
        assert_eq!((self.home.processes(), self.home.leftovers()), (Vec::new(), Vec::new()));
    }
}

/// What its station could not put back was told in the log alone.
#[test]
fn an_agent_that_leaves_something_says_so_with_its_status() {
    if !is_root() {
        skip("root", "needs root");
        return;
    }
    let agent = Agent::start();
    let (connection, premises, _) = agent.begin();
    let held = Held::mount(premises.directory.join("held"));
    signal(agent.running.pid(), Signal::INT);
    let outcome = agent.running.finish();
    drop((held, connection));
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    outcome.assert_says(&["the system is not as it was", "`weigh restore` tries again"]);
    agent.home.succeed("restore");
    assert_eq!(agent.home.leftovers(), Vec::<PathBuf>::new());
}

/// Reads to the end, which has to come; gives what came.
fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(LONG)).unwrap();
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("it was not closed: {error}"),
    }
    bytes
}

#[test]
fn strangers_get_nothing_whatever_they_send() {
    let agent = Agent::start();
    let wrong = Secret::of_token(&"x".repeat(32)).unwrap();
    let hello = Hello {
        version: VERSION.into(),
        experiment: new_experiment().unwrap(),
        wants: CallFor::Experiment,
    };
    let refused = dial(&agent.address, &wrong, &hello).map(|dialled| dialled.welcome).unwrap_err();
    assert!(refused.contains("has not its token"), "{refused}");
    let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(1996);
    for number in 0..crate::support::hard(200, 20_000) {
        let mut stream = TcpStream::connect(&agent.address).unwrap();
        let mut garbage: Vec<u8> =
            (0..chance.random_range(2..400)).map(|_| chance.random()).collect();
        match number % 4 {
            // Of the right length, and nothing right in it.
            0 => garbage.splice(..2, [0, 48]).for_each(drop),
            1 => garbage.splice(..2, [0xff, 0xff]).for_each(drop),
            _ => {}
        }
        garbage.resize(garbage.len().max(50), 7);
        let _ = stream.write_all(&garbage);
        assert_eq!(read_to_end(&mut stream), Vec::<u8>::new(), "to {garbage:?}");
    }
    assert_eq!(agent.begun(), 0);
    agent.assert_alone();
    agent.end();
}

#[test]
fn what_was_recorded_begins_nothing() {
    let agent = Agent::start();
    // Conducts the conversation by hand, to know what was sent.
    let mut stream = TcpStream::connect(&agent.address).unwrap();
    let mut channel = Channel::call(&agent.secret());
    let greeting = channel.unsent();
    stream.write_all(&greeting).unwrap();
    let mut answer = [0; 50];
    stream.read_exact(&mut answer).unwrap();
    channel.take(&answer);
    assert_eq!(channel.next_frame(), Ok(None));
    let hello = Hello {
        version: VERSION.into(),
        experiment: new_experiment().unwrap(),
        wants: CallFor::Experiment,
    };
    channel.send(&serde_json::to_vec(&hello).unwrap()).unwrap();
    let said = channel.unsent();
    stream.write_all(&said).unwrap();
    assert!(wait_until(LONG, || agent.begun() == 1), "{}", agent.running.said());
    drop(stream);
    agent.assert_alone();
    for recorded in [greeting.clone(), [greeting, said].concat()] {
        let mut stream = TcpStream::connect(&agent.address).unwrap();
        stream.write_all(&recorded).unwrap();
        // At most its greeting is answered by another, which is of no use to him.
        assert!(read_to_end(&mut stream).len() <= 50);
    }
    assert_eq!(agent.begun(), 1);
    agent.assert_alone();
    agent.end();
}

#[test]
fn who_is_slow_or_silent_is_given_up_and_holds_up_nobody() {
    let agent = Agent::start();
    let mut slow: Vec<TcpStream> =
        (0..8).map(|_| TcpStream::connect(&agent.address).unwrap()).collect();
    let mut greeting = vec![0, 48];
    greeting.resize(50, 7);
    let (began, mut sent) = (Instant::now(), 0);
    let is_closed = |stream: &mut TcpStream| {
        stream.set_nonblocking(true).unwrap();
        !matches!(stream.read(&mut [0; 9]), Err(error) if error.kind() == ErrorKind::WouldBlock)
    };
    while !slow.iter_mut().all(is_closed) {
        assert!(began.elapsed() < LONG, "they are still there");
        for stream in &mut slow {
            let _ = stream.write_all(&greeting[sent..sent + 1]);
        }
        sent = (sent + 1).min(40);
        // Meanwhile whoever has the token is served.
        if sent == 5 {
            drop(agent.begin());
        }
        std::thread::sleep(Duration::from_millis(250));
    }
    agent.assert_alone();
    agent.end();
}

#[test]
fn a_thousand_connections_take_no_room_and_no_turn() {
    let agent = Agent::start();
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    if limit.maximum.is_some_and(|most| most < 1200) {
        skip("files", &format!("this process may have {:?} files", limit.maximum));
        return;
    }
    let status = |name: &str| -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", agent.running.pid())).unwrap();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let before = status("VmRSS:");
    let streams: Vec<TcpStream> = (0..1000)
        .map(|number| {
            let mut stream = TcpStream::connect(&agent.address).unwrap();
            let _ = stream.write_all(if number % 2 == 0 { &[0, 48, 1, 2, 3] } else { &[] });
            stream
        })
        .collect();
    let (connection, ..) = agent.begin();
    let files = fs::read_dir(format!("/proc/{}/fd", agent.running.pid())).unwrap().count();
    assert!(files < 120, "{files} open files");
    let grown = status("VmRSS:").saturating_sub(before);
    assert!(grown < 16 << 10, "{grown} KiB more than without them");
    drop((connection, streams));
    agent.assert_alone();
    agent.end();
}

#[test]
fn one_experiment_at_a_time_of_one_version_by_its_number() {
    let agent = Agent::start();
    let refusal = |called: Result<Dialled, String>| match called.unwrap().welcome {
        Welcome::Refused(why) => why,
        other => panic!("{other:?}"),
    };
    let nothing = refusal(agent.call(CallFor::Launcher, &new_experiment().unwrap()));
    assert!(nothing.contains("no such experiment"), "{nothing}");
    let other = Hello {
        version: "weigh 0.0.1".into(),
        experiment: new_experiment().unwrap(),
        wants: CallFor::Experiment,
    };
    let other = refusal(dial(&agent.address, &agent.secret(), &other));
    assert!(other.contains(VERSION) && other.contains("you are `weigh 0.0.1`"), "{other}");
    let odd = refusal(agent.call(CallFor::Experiment, "../../etc"));
    assert!(odd.contains("32 hexadecimal digits"), "{odd}");
    agent.assert_alone();
    let (connection, premises, experiment) = agent.begin();
    assert!(premises.executable.starts_with(&premises.directory) && premises.interface == "lo");
    let second = refusal(agent.call(CallFor::Experiment, &new_experiment().unwrap()));
    assert!(second.contains("one at a time"), "{second}");
    let strange = refusal(agent.call(CallFor::Launcher, &new_experiment().unwrap()));
    assert!(strange.contains("another experiment"), "{strange}");
    let no_peer = refusal(agent.call(CallFor::Peer, &experiment));
    assert!(no_peer.contains("its peer"), "{no_peer}");
    let launcher = agent.call(CallFor::Launcher, &experiment).unwrap();
    assert_eq!(launcher.welcome, Welcome::Connected);
    assert_eq!(agent.home.processes_of("__launcher").len(), 1);
    // All of it ends with the experiment.
    drop(connection);
    agent.assert_alone();
    drop(launcher);
    agent.end();
}

#[test]
fn an_agent_that_is_killed_leaves_nothing() {
    let mut agent = Agent::start();
    let (_connection, _, experiment) = agent.begin();
    let _launcher = agent.call(CallFor::Launcher, &experiment).unwrap();
    agent.running.kill();
    let home = &agent.home;
    assert!(wait_until(LONG, || home.processes().is_empty()), "{:?}", home.describe_processes());
    assert!(wait_until(LONG, || home.leftovers().is_empty()), "{:?}", home.leftovers());
}

#[test]
fn token_files_are_private_and_long() {
    let home = Home::new();
    let refused = |said: &str| {
        let arguments = ["agent", "--listen", "127.0.0.1:0", "--token-file", "token"];
        home.run(&arguments).assert_error(&[said]);
    };
    refused("there is no token file token: `weigh agent --new-token token` makes one");
    home.succeed("agent --new-token token");
    home.run("agent --new-token token").assert_error(&["File exists"]);
    if is_root() {
        let [ours, theirs] = ["ours", "theirs"].map(|name| home.path(name));
        fs::create_dir(&ours).unwrap();
        fs::create_dir(&theirs).unwrap();
        std::os::unix::fs::symlink(&ours, theirs.join("link")).unwrap();
        for path in [theirs.join("link"), theirs.clone()] {
            std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let token = theirs.join("link/token");
        home.run(&["agent", "--new-token", token.to_str().unwrap()])
            .assert_error(&["belongs to another user"]);
        assert_eq!(fs::read_dir(&ours).unwrap().count(), 0);
    }
    let mode = |mode| {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(home.path("token"), permissions).unwrap();
    };
    mode(0o644);
    refused("can be read by others");
    home.file("token", "secret");
    mode(0o600);
    refused("32 characters or more");
    home.run("net --active a.lab").assert_error(&["--passive"]);
    let hosts = ["net", "--active", "a", "--passive", "b", "--token-file", "none"];
    home.run(&hosts).assert_error(&["there is no token file none"]);
}
