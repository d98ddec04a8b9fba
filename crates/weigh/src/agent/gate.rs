//! What an agent lets through to its launcher and its testbed: the orders that a black box needs, and no
//! others. So who has the token can have this machine move test payload, and not run anything.

use std::path::Component;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::far::Premises;
use crate::far::pump::{PassGate, Passed};
use crate::net::peer::{PEER, peer_argv, peer_log, peer_socket};
use crate::testbed::{Extent, TestbedAnswer, TestbedOrder, TestbedSetup};
use crate::workload::launcher::{LauncherAnswer, LauncherOrder, Numbered};
use crate::workload::member::{Raise, Readiness};
use crate::workload::setup::Setup;
use crate::workload::setup::kind::allowed_cpus::AllowedCpus;
use crate::workload::setup::kind::join_network::JoinNetwork;

/// An order is shorter by far.
const LONGEST_LINE: usize = 64 << 10;
const LONGEST_WAIT_MS: u64 = 60_000;
const MOST_HELD_BYTES: u64 = 256 << 20;
const MOST_CHOICES: usize = 16;

/// What the orders of one experiment are held against.
#[derive(Clone, Debug)]
pub struct Gates {
    pub premises: Premises,
    /// The process of its testbed, where there is one.
    pub testbed: Option<u32>,
}

impl Gates {
    /// That of a launcher: answers by itself what is not for it.
    pub fn launcher(self) -> PassGate {
        by_line(move |line| {
            let order: Numbered<LauncherOrder> = read(line)?;
            let Numbered { id, ref what } = order;
            Ok(match self.check_order(what) {
                Ok(()) => Passed { on: line_of(&order)?, back: Vec::new() },
                Err(problem) => {
                    let what = LauncherAnswer::Error(format!("the agent: {problem}"));
                    Passed { on: Vec::new(), back: line_of(&Numbered { id, what })? }
                }
            })
        })
    }

    /// That of a testbed.
    pub fn testbed(self) -> PassGate {
        let mut is_set_up = false;
        by_line(move |line| {
            let (order, checked) = match std::mem::replace(&mut is_set_up, true) {
                false => {
                    let setup: TestbedSetup = read(line)?;
                    (line_of(&setup)?, self.check_testbed(&setup))
                }
                true => {
                    let order: TestbedOrder = read(line)?;
                    (line_of(&order)?, check_link(&order))
                }
            };
            Ok(match checked {
                Ok(()) => Passed { on: order, back: Vec::new() },
                Err(problem) => {
                    let refused = TestbedAnswer::Error(format!("the agent: {problem}"));
                    Passed { on: Vec::new(), back: line_of(&refused)? }
                }
            })
        })
    }

    fn check_order(&self, order: &LauncherOrder) -> Result<(), String> {
        match order {
            LauncherOrder::SetUp(setup) => self.check_setup(setup),
            LauncherOrder::Raise(raise) => self.check_raise(raise),
            LauncherOrder::Lower { limit_ms, .. } if *limit_ms > LONGEST_WAIT_MS => {
                Err("it waits no longer than a minute".into())
            }
            LauncherOrder::Look(_) | LauncherOrder::Lower { .. } => Ok(()),
            LauncherOrder::Run(_) | LauncherOrder::Freeze(_) | LauncherOrder::Thaw(_) => {
                Err("it starts peers, and runs nothing".into())
            }
        }
    }

    /// A peer is in the host of its testbed, and no step of a treatment is its business.
    fn check_setup(&self, setup: &Setup) -> Result<(), String> {
        let testbed = self.testbed.ok_or("there is no testbed")?;
        let others = setup.clone().without::<JoinNetwork>().without::<AllowedCpus>();
        let is_its = |join: &JoinNetwork| {
            let namespace = &join.namespace;
            namespace.starts_with(format!("/proc/{testbed}/fd"))
                && !namespace.components().any(|part| part == Component::ParentDir)
                && join.user_namespace.is_none()
        };
        let joins = setup.get::<JoinNetwork>().is_some_and(is_its);
        let is_peers = joins && others == Setup::default();
        is_peers.then_some(()).ok_or_else(|| "this is no set-up of a peer".into())
    }

    /// It is the peer of COMM, with its files where they belong.
    fn check_raise(&self, raise: &Raise) -> Result<(), String> {
        let Premises { directory, executable, .. } = &self.premises;
        let socket = peer_socket(directory);
        let peer = peer_argv(executable, &socket, None);
        let ftp = raise.argv.get(peer.len()..).unwrap_or_default();
        let is_ftp = matches!(ftp, [] | [_, _]) && ftp.iter().all(|word| is_address_or_port(word));
        let is_peer = raise.name == PEER
            && raise.argv.starts_with(&peer)
            && is_ftp
            && raise.environment.iter().all(|(name, value)| name == "WEIGH_NONCE" && is_hex(value))
            && raise.directory == *directory
            && raise.log == peer_log(&socket)
            && raise.ready == Readiness::Exists(socket)
            && raise.timeout_ms <= LONGEST_WAIT_MS
            && raise.user.is_none()
            && !raise.is_users_own
            && !raise.has_own_pids;
        is_peer.then_some(()).ok_or_else(|| "this is no peer of COMM".into())
    }

    fn check_testbed(&self, setup: &TestbedSetup) -> Result<(), String> {
        match &setup.extent {
            Extent::Far { over, .. } if *over == self.premises.interface => {
                let directory = setup.collect_in.as_ref();
                let is_ours = directory.is_none_or(|path| *path == self.premises.directory);
                is_ours.then_some(()).ok_or_else(|| "it keeps records in its own directory".into())
            }
            _ => Err("it is a black box, on the interface that it was called over".into()),
        }
    }
}

fn check_link(order: &TestbedOrder) -> Result<(), String> {
    match order {
        TestbedOrder::Configure { impairment, .. } => {
            let sizes = [impairment.held_bytes, impairment.queue_bytes];
            let is_small = sizes.into_iter().flatten().all(|bytes| bytes <= MOST_HELD_BYTES);
            if is_small && impairment.loss.len() <= MOST_CHOICES {
                return Ok(());
            }
            Err("it holds no more than 256 MiB, and has 16 choices of what is lost".into())
        }
        TestbedOrder::RoundTrips { .. } => Err("W_test measures that".into()),
        // It writes a file.
        TestbedOrder::Trace(_) => Err("packets are written down on W_test".into()),
        _ => Ok(()),
    }
}

fn is_address_or_port(word: &str) -> bool {
    word.len() <= 15 && !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || c == '.')
}

fn is_hex(word: &str) -> bool {
    word.len() == 32 && word.chars().all(|c| c.is_ascii_hexdigit())
}

/// Puts lines together of what comes, in whatever pieces.
fn by_line(mut look: impl FnMut(&[u8]) -> Result<Passed, String> + 'static) -> PassGate {
    let mut begun: Vec<u8> = Vec::new();
    Box::new(move |bytes| {
        begun.extend(bytes);
        let mut all = Passed::default();
        while let Some(end) = begun.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = begun.drain(..=end).collect();
            let Passed { on, back } = look(&line)?;
            all.on.extend(on);
            all.back.extend(back);
        }
        match begun.len() > LONGEST_LINE {
            true => Err(format!("a line of more than {LONGEST_LINE} bytes")),
            false => Ok(all),
        }
    })
}

fn read<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|error| format!("this is no order: {error}"))
}

/// What was understood, and not what was sent: nothing else is passed on.
fn line_of(message: &impl Serialize) -> Result<Vec<u8>, String> {
    let mut line = serde_json::to_vec(message).map_err(|error| error.to_string())?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::testbed::BlackBox;
    use crate::workload::launcher::Job;
    use crate::workload::setup::kind::nice_level::NiceLevel;
    use crate::workload::stdout_use::StdoutUse;

    fn gates() -> Gates {
        let premises = Premises {
            machine: String::new(),
            directory: "/tmp/weigh-1".into(),
            executable: "/tmp/weigh-1/weigh-workloads".into(),
            interface: "eth0".into(),
            agent: 1,
        };
        Gates { premises, testbed: Some(7) }
    }

    fn join(namespace: &str) -> Setup {
        let join = JoinNetwork { user_namespace: None, namespace: namespace.into(), inode: 1 };
        Setup::default().with(join)
    }

    fn peer() -> Raise {
        let directory = PathBuf::from("/tmp/weigh-1");
        let socket = peer_socket(&directory);
        Raise {
            name: PEER.into(),
            argv: peer_argv(
                &directory.join("weigh-workloads"),
                &socket,
                Some(("198.19.1.2", "2121")),
            ),
            environment: vec![("WEIGH_NONCE".into(), "0123456789abcdef0123456789abcdef".into())],
            is_users_own: false,
            log: peer_log(&socket),
            ready: Readiness::Exists(socket),
            directory,
            timeout_ms: 10_000,
            is_disposable: true,
            is_asked: false,
            user: None,
            has_own_pids: false,
        }
    }

    #[test]
    fn a_launcher_starts_a_peer_in_its_testbed_and_nothing_else() {
        let is_allowed = |order: LauncherOrder| gates().check_order(&order).is_ok();
        assert!(is_allowed(LauncherOrder::SetUp(join("/proc/7/fd/9"))));
        assert!(is_allowed(LauncherOrder::Raise(peer())));
        for wrong in
            ["/proc/8/fd/9", "/proc/7/fd/../../1/ns/net", "/proc/7/ns/net", "/proc/77/fd/9"]
        {
            assert!(!is_allowed(LauncherOrder::SetUp(join(wrong))), "{wrong}");
        }
        assert!(!is_allowed(LauncherOrder::SetUp(Setup::default())));
        assert!(!is_allowed(LauncherOrder::SetUp(
            join("/proc/7/fd/9").with(NiceLevel { level: Some(-5) })
        )));
        let job = Job {
            argv: vec!["id".into()],
            environment: Vec::new(),
            directory: "/".into(),
            timeout_ms: 1,
            stdout: StdoutUse::KeepEnd,
            start: None,
        };
        assert!(!is_allowed(LauncherOrder::Run(job)));
        let changes: [fn(&mut Raise); 8] = [
            |raise| raise.argv[0] = "/bin/sh".into(),
            |raise| raise.argv[1] = "comm".into(),
            |raise| raise.argv[2] = "/etc/x".into(),
            |raise| raise.argv[3] = "$(id)".into(),
            |raise| raise.log = "/etc/cron.d/x".into(),
            |raise| raise.directory = "/".into(),
            |raise| raise.environment.push(("LD_PRELOAD".into(), "/tmp/x.so".into())),
            |raise| raise.timeout_ms = 1 << 40,
        ];
        for change in changes {
            let mut raise = peer();
            change(&mut raise);
            assert!(!is_allowed(LauncherOrder::Raise(raise.clone())), "{raise:?}");
        }
    }

    #[test]
    fn a_testbed_is_a_black_box_on_the_interface_of_the_call() {
        let setup = |extent| TestbedSetup { extent, ..TestbedSetup::default() };
        let far =
            |over: &str| setup(Extent::Far { black_box: BlackBox::Active, over: over.into() });
        assert!(gates().check_testbed(&far("eth0")).is_ok());
        assert!(gates().check_testbed(&far("eth1")).is_err());
        assert!(gates().check_testbed(&setup(Extent::Whole)).is_err());
        let elsewhere = TestbedSetup { collect_in: Some("/etc".into()), ..far("eth0") };
        assert!(gates().check_testbed(&elsewhere).is_err());
        assert!(check_link(&TestbedOrder::Counters(BlackBox::Active)).is_ok());
        assert!(check_link(&TestbedOrder::Trace(Some("/etc/passwd".into()))).is_err());
    }

    #[test]
    fn what_is_refused_is_answered_by_its_number_and_not_passed_on() {
        let mut gate = gates().launcher();
        let order = Numbered { id: 5, what: LauncherOrder::Freeze(PEER.into()) };
        let line = line_of(&order).unwrap();
        assert_eq!(gate(&line[..9]), Ok(Passed::default()));
        let Passed { on, back } = gate(&line[9..]).unwrap();
        assert!(on.is_empty());
        let answer: Numbered<LauncherAnswer> = serde_json::from_slice(&back).unwrap();
        assert!(answer.id == 5 && matches!(answer.what, LauncherAnswer::Error(_)));
        let look = line_of(&Numbered { id: 6, what: LauncherOrder::Look(PEER.into()) }).unwrap();
        assert_eq!(gate(&look), Ok(Passed { on: look.clone(), back: Vec::new() }));
        assert!(gate(b"{\"id\":1}\n").is_err());
        assert!(gate(&vec![b'x'; LONGEST_LINE + 1]).is_err());
    }
}
