//! Waiting for a lock that another experiment holds, and who that is: whoever is refused wants to know whom
//! to wait for, or to stop.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};

use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};

use crate::interruption;
use crate::machine::process::{process_start, read_proc};
use weigh_model::format;
use weigh_model::shell::command_line;

const LOOK_EVERY: Duration = Duration::from_millis(200);
/// A command line is shown this far.
const MOST_CHARS: usize = 80;

/// Why a lock was not taken.
#[derive(Debug, PartialEq)]
pub enum Refused {
    /// Another holds it; the clause names the holder. After the longest wait, it is a whole sentence.
    Busy(String),
    /// The sentence says why it cannot be had at all.
    Failed(String),
}

impl From<String> for Refused {
    fn from(problem: String) -> Refused {
        Refused::Failed(problem)
    }
}

impl From<Refused> for String {
    fn from(refused: Refused) -> String {
        match refused {
            Refused::Busy(sentence) | Refused::Failed(sentence) => sentence,
        }
    }
}

impl Refused {
    /// The sentence for a command that cannot wait.
    pub fn without_waiting(self) -> String {
        match self {
            Refused::Busy(busy) => {
                format!(
                    "{busy}. Try again when it has ended, or press Ctrl-C in its terminal to stop it"
                )
            }
            Refused::Failed(problem) => problem,
        }
    }
}

/// Takes the lock, waiting up to `longest`; without `longest`, fails at once. `announce` gets
/// a sentence that names the holder when the wait begins, and another one when it has ended.
///
/// Nothing is held and nothing is changed meanwhile, so a signal ends this process as it would end any other.
pub fn take<T>(
    longest: Option<Duration>,
    announce: &mut dyn FnMut(&str),
    mut attempt: impl FnMut() -> Result<T, Refused>,
) -> Result<T, Refused> {
    let began = Instant::now();
    let mut has_waited = false;
    loop {
        let busy = match attempt() {
            Ok(taken) => {
                if has_waited {
                    let waited = format::clock(began.elapsed().as_secs_f64());
                    announce(&format!("The wait is over after {waited}."));
                }
                return Ok(taken);
            }
            Err(Refused::Busy(busy)) => busy,
            Err(failed) => return Err(failed),
        };
        let Some(longest) = longest else {
            return Err(Refused::Busy(format!(
                "{busy}. Use --wait to queue behind it, or press Ctrl-C in its terminal to stop it"
            )));
        };
        let left = longest.saturating_sub(began.elapsed());
        if left.is_zero() {
            let waited = format::seconds(longest.as_secs_f64());
            return Err(Refused::Busy(format!(
                "still busy after waiting {waited}: {busy}. Use a longer --wait=TIME"
            )));
        }
        if interruption::has_come() {
            interruption::end_by_signal();
        }
        if !has_waited {
            let left = format::clock(left.as_secs_f64());
            announce(&format!("Waiting up to {left}, because {busy}."));
            has_waited = true;
        }
        thread::sleep(LOOK_EVERY.min(left));
    }
}

/// Takes several locks, one after the other, until one is refused. The next attempt begins with that one: so
/// while a process waits for it, it holds no other, which would keep a third process out.
///
/// # Errors
/// As `take`; what was taken before is the caller's to drop.
pub fn take_all<T: Copy>(
    wanted: &mut [T],
    mut take: impl FnMut(T) -> Result<(), Refused>,
) -> Result<(), Refused> {
    for at in 0..wanted.len() {
        if let Err(refused) = take(wanted[at]) {
            wanted[..=at].rotate_right(1);
            return Err(refused);
        }
    }
    Ok(())
}

/// A process that holds a lock, as it is written into the lock's file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Holder {
    pid: u32,
    /// As [`process_start`]: numbers come again.
    start: i64,
}

impl Holder {
    pub fn this() -> io::Result<Holder> {
        let pid = std::process::id();
        let start = process_start(pid)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(Holder { pid, start })
    }

    /// Names it in the file of a lock.
    ///
    /// # Errors
    /// As `ftruncate(2)` and `pwrite(2)`.
    pub fn write_into(self, lock: &File) -> io::Result<()> {
        lock.set_len(0)?;
        lock.write_all_at(format!("{} {}\n", self.pid, self.start).as_bytes(), 0)
    }

    /// Reads what [`Holder::write_into`] wrote; `None` of anything else.
    pub fn read(text: &str) -> Option<Holder> {
        let mut words = text.split_whitespace();
        let (pid, start) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        words.next().is_none().then_some(Holder { pid, start })
    }

    /// Its command, its number, and for how long it has run: `` `weigh run` (process 7, for 3.2 s) ``. `None`
    /// if no such process can be seen here, as in another container.
    pub fn shown(self) -> Option<String> {
        let Holder { pid, start } = self;
        if process_start(pid).ok()? != Some(start) {
            return None;
        }
        let words = read_proc(pid, "cmdline").ok()?;
        let words = String::from_utf8_lossy(&words).into_owned();
        // The words of a command that is weighed may hold secrets.
        let of_weigh = words.trim_end_matches('\0').split('\0').take_while(|word| *word != "--");
        let line = command_line(of_weigh);
        let command = format::shorten(&format::label(&line), MOST_CHARS);
        let age = format::seconds(self.age_s().max(0.0));
        Some(format!("`{}` (process {pid}, for {age})", command.replace('`', "'")))
    }

    fn age_s(self) -> f64 {
        seconds_since_boot() - self.start as f64 / clock_ticks_per_second() as f64
    }
}

fn seconds_since_boot() -> f64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_holder_is_read_as_it_was_written_and_named() {
        let this = Holder::this().unwrap();
        let lock = tempfile::NamedTempFile::new().unwrap();
        fs::write(&lock, "a longer text, of whoever had it before").unwrap();
        this.write_into(lock.as_file()).unwrap();
        assert_eq!(Holder::read(&fs::read_to_string(&lock).unwrap()), Some(this));
        let pid = std::process::id();
        let shown = this.shown().unwrap();
        let numbered = format!("` (process {pid}, for ");
        assert!(shown.starts_with('`') && shown.contains(&numbered), "{shown}");
        // The number is of another process by now.
        let another = Holder { start: this.start - 1, ..this };
        assert_eq!(another.shown(), None);
        for wrong in ["", "\n", "x", "7", "7 x", "7 8 9", "/var/lib/weighbridge/7.journal"] {
            assert_eq!(Holder::read(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_holder_is_as_old_as_its_process() {
        const CLOCK_TICK_S: f64 = 0.01;
        let uptime_s = || {
            let text = fs::read_to_string("/proc/uptime").unwrap();
            text.split(' ').next().unwrap().parse::<f64>().unwrap()
        };
        let before = uptime_s();
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let start = process_start(child.id()).unwrap().unwrap();
        let (age, now) = (Holder { pid: child.id(), start }.age_s(), seconds_since_boot());
        let of_boot = Holder { pid: child.id(), start: 0 }.age_s();
        let after = uptime_s();
        child.kill().unwrap();
        child.wait().unwrap();
        let near = |from: f64, to: f64| from - 2.0 * CLOCK_TICK_S..=to + 2.0 * CLOCK_TICK_S;
        assert!(
            [now, of_boot].iter().all(|age| near(before, after).contains(age)),
            "{now} {of_boot}"
        );
        assert!(near(0.0, after - before).contains(&age), "{age}");
    }

    /// Its arguments may hold secrets.
    #[test]
    fn the_command_that_a_holder_weighs_is_not_shown() {
        let line = ["-c", "echo; read line", "--", "secret"];
        let mut command = Command::new("sh");
        command.args(line).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut ready = [0];
        io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
        let start = process_start(child.id()).unwrap().unwrap();
        let shown = Holder { pid: child.id(), start }.shown().unwrap();
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(shown.starts_with("`sh -c 'echo; read line'` (process "), "{shown}");
    }

    fn busy<T>() -> Result<T, Refused> {
        Err(Refused::Busy("`a` is running".into()))
    }

    #[test]
    fn without_a_time_nothing_is_waited_for_and_what_fails_is_no_queue() {
        let mut told = Vec::new();
        let mut announce = |sentence: &str| told.push(sentence.to_owned());
        let Err(Refused::Busy(refused)) = take::<()>(None, &mut announce, busy) else { panic!() };
        assert!(
            refused.starts_with("`a` is running. Use --wait to queue behind it, or "),
            "{refused}"
        );
        let failed = || Err(Refused::Failed("no".into()));
        let long = Some(Duration::from_secs(3600));
        assert_eq!(take::<()>(long, &mut announce, failed), Err(Refused::Failed("no".into())));
        assert_eq!(told, [""; 0]);
    }

    #[test]
    fn who_waits_for_one_of_several_locks_touches_no_other() {
        let mut wanted = ["a", "b", "c"];
        let mut attempt = |held: &str| {
            let mut asked = Vec::new();
            let taken = take_all(&mut wanted, |one| {
                asked.push(one);
                if one == held { busy() } else { Ok(()) }
            });
            (taken.is_ok(), asked.concat())
        };
        assert_eq!(attempt("c"), (false, "abc".into()));
        assert_eq!(attempt("c"), (false, "c".into()));
        assert_eq!(attempt("a"), (false, "ca".into()));
        assert_eq!(attempt("a"), (false, "a".into()));
        assert_eq!(attempt(""), (true, "acb".into()));
    }

    #[test]
    fn who_waits_gets_its_turn_and_every_wait_ends() {
        let mut told = Vec::new();
        let mut announce = |sentence: &str| told.push(sentence.to_owned());
        let mut attempts = 0;
        let third = || {
            attempts += 1;
            if attempts == 3 { Ok(attempts) } else { busy() }
        };
        let wait = Duration::from_secs(3600);
        assert_eq!(take(Some(wait), &mut announce, third), Ok(3));
        let short = Some(Duration::from_millis(1));
        let Err(Refused::Busy(ended)) = take::<()>(short, &mut announce, busy) else { panic!() };
        assert!(ended.starts_with("still busy after waiting "), "{ended}");
        let begins = |told: &str| {
            told.starts_with("Waiting up to ") && told.ends_with(", because `a` is running.")
        };
        assert_eq!(told.len(), 3, "when it begins and when it ends: {told:?}");
        assert!(begins(&told[0]) && begins(&told[2]), "{told:?}");
        assert!(told[1].starts_with("The wait is over after "), "{told:?}");
    }
}
