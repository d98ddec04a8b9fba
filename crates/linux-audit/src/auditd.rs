//! The real `auditd`, with a configuration of its own that touches nothing of the host's: started as
//! `auditd -n -s nochange -c DIRECTORY`, ended with SIGTERM.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::netlink::Client;
use trust::program::{self, end_with_us};
use trust::start::{self, Inherited};

const START_LIMIT: Duration = Duration::from_secs(10);
/// It may have the log to write out first.
const END_LIMIT: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// auditd.conf(5): the log is flushed after so many records, where it is flushed now and then.
const FREQUENCY: u32 = 50;

/// `flush` of auditd.conf(5): how a record gets to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// When the kernel likes.
    None,
    /// Now and then, by the thread that writes.
    Incremental,
    /// Now and then, by a thread of its own: what distributions ship.
    IncrementalAsync,
    /// Data with every record.
    Data,
    /// Data and metadata with every record.
    Sync,
}

impl Flush {
    /// Every way once.
    pub const ALL: [Flush; 5] =
        [Flush::None, Flush::Incremental, Flush::IncrementalAsync, Flush::Data, Flush::Sync];

    /// As auditd.conf has it.
    pub fn word(self) -> &'static str {
        match self {
            Flush::None => "none",
            Flush::Incremental => "incremental",
            Flush::IncrementalAsync => "incremental_async",
            Flush::Data => "data",
            Flush::Sync => "sync",
        }
    }
}

/// `log_format` of auditd.conf(5): how a record is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// As the kernel sends it.
    Raw,
    /// With names for the numbers of users, groups, calls and addresses: what auditd ships.
    Enriched,
}

/// Separates the fields that auditd adds to an enriched record; their names are in capitals.
const ENRICHMENT: u8 = 0x1d;

impl LogFormat {
    /// As auditd.conf has it.
    pub fn word(self) -> &'static str {
        match self {
            LogFormat::Raw => "RAW",
            LogFormat::Enriched => "ENRICHED",
        }
    }

    /// Returns the format of the last record of a system call in this part of a log; `None` without any.
    /// auditd adds nothing to a text such as our marker's.
    pub fn of_log(log: &[u8]) -> Option<LogFormat> {
        let mut lines = log.split(|&byte| byte == b'\n');
        let line = lines.rfind(|line| line.starts_with(b"type=SYSCALL "))?;
        let added = line.iter().position(|&byte| byte == ENRICHMENT).map(|at| &line[at + 1..]);
        let is_field = |added: &[u8]| {
            let name = added.split(|&byte| byte == b'=').next().unwrap_or_default();
            name.len() < added.len() && !name.is_empty() && name.iter().all(u8::is_ascii_uppercase)
        };
        Some(if added.is_some_and(is_field) { LogFormat::Enriched } else { LogFormat::Raw })
    }
}

/// Program that auditd's dispatcher gives all records, one to a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plugin {
    /// Reads all records and discards them.
    Discard,
    /// Waits so long for each record.
    Slow(Duration),
    /// A program of the user's, which only root can change, and its arguments.
    Program(PathBuf, Vec<String>),
}

/// auditd keeps 2,000 records for its plugin, which take 200 s then.
const LONGEST_DELAY: Duration = Duration::from_millis(100);

impl Plugin {
    /// The plugin that is a program of the user's with its arguments, or one with a delay; `None` without
    /// either. Root executes the program.
    ///
    /// # Errors
    /// A sentence: both are given, another user than root can change the program, or the delay is no time.
    pub fn parse(program: Option<&str>, delay: Option<&str>) -> Result<Option<Plugin>, String> {
        match (program, delay) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err("plugin= and delay= are two plugins: use one of them".into()),
            (Some(line), None) => {
                let mut words = line.split_ascii_whitespace();
                let program =
                    words.next().ok_or("plugin= takes a program, such as /usr/sbin/laurel")?;
                let program = trust::path::trusted(Path::new(program))
                    .map_err(|error| format!("plugin={line}: {error}"))?;
                if !program.is_file() {
                    return Err(format!("plugin={line}: {} is no program", program.display()));
                }
                Ok(Some(Plugin::Program(program, words.map(str::to_owned).collect())))
            }
            (None, Some(time)) => {
                let parsed = time.parse::<jiff::SignedDuration>().ok();
                let delay = parsed.and_then(|delay| Duration::try_from(delay).ok());
                let delay = delay.filter(|delay| !delay.is_zero() && *delay <= LONGEST_DELAY);
                let problem = || format!("delay={time}: takes up to 100ms, such as 1ms");
                delay.map(|delay| Some(Plugin::Slow(delay))).ok_or_else(problem)
            }
        }
    }

    /// The script that auditd starts; `seen` is the file for the last marker that a slow plugin read.
    fn script(&self, seen: &Path) -> String {
        match self {
            Plugin::Discard => "#!/bin/sh\nexec cat >/dev/null\n".into(),
            Plugin::Slow(delay) => format!(
                "#!/bin/sh\nwhile IFS= read -r line; do\n\tsleep {}\n\tcase $line in\n\ttype=TRUSTED_APP*) \
                 printf '%s\\n' \"$line\" >{} ;;\n\tesac\ndone\n",
                delay.as_secs_f64(),
                quoted(&seen.display().to_string())
            ),
            Plugin::Program(..) => {
                let words = self.words().map(|word| quoted(&word)).collect::<Vec<_>>();
                format!("#!/bin/sh\nexec {}\n", words.join(" "))
            }
        }
    }

    /// Program and arguments of the user's plugin.
    fn words(&self) -> impl Iterator<Item = String> {
        let (program, arguments) = match self {
            Plugin::Program(program, arguments) => (Some(program), arguments.as_slice()),
            Plugin::Discard | Plugin::Slow(_) => (None, [].as_slice()),
        };
        program.map(|path| path.display().to_string()).into_iter().chain(arguments.iter().cloned())
    }

    /// A phrase for the report.
    pub fn what(&self) -> String {
        match self {
            Plugin::Discard => "reads and discards the records".into(),
            Plugin::Slow(delay) => {
                format!("waits {} ms or more for each record", delay.as_secs_f64() * 1e3)
            }
            Plugin::Program(..) => format!("is {}", self.words().collect::<Vec<_>>().join(" ")),
        }
    }
}

/// A word of a shell's command line.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Configuration of auditd. All other settings are as Debian and Fedora ship them.
#[derive(Clone, Debug)]
pub struct AuditdConfiguration {
    /// Is created, and holds the configuration.
    pub directory: PathBuf,
    /// Where `audit.log` goes; exists.
    pub log_directory: PathBuf,
    /// How a record is written.
    pub format: LogFormat,
    /// How a record gets to the disk.
    pub flush: Flush,
    /// Plugin that gets all records.
    pub plugin: Option<Plugin>,
    /// `max_log_file`, in MiB; a full file is rotated and `num_logs` are kept.
    pub max_log_mib: u32,
    /// How many full files are kept: 0 to 999, as auditd.conf(5) has it.
    pub num_logs: u32,
    /// `disk_full_action`; an error of the disk suspends, as `disk_error_action` knows less.
    pub disk_full_action: &'static str,
}

impl AuditdConfiguration {
    /// The log in the same directory, in files of the size that distributions set.
    pub fn new(directory: PathBuf, flush: Flush, plugin: Option<Plugin>) -> AuditdConfiguration {
        AuditdConfiguration {
            log_directory: directory.clone(),
            directory,
            format: LogFormat::Raw,
            flush,
            plugin,
            max_log_mib: 8,
            num_logs: 5,
            disk_full_action: "SUSPEND",
        }
    }

    /// The file that the log goes to.
    pub fn log(&self) -> PathBuf {
        self.log_directory.join("audit.log")
    }

    /// The text of auditd.conf. No action does anything to the host.
    fn text(&self) -> String {
        let AuditdConfiguration { max_log_mib, num_logs, disk_full_action, .. } = self;
        let (log, format, flush) = (self.log(), self.format.word(), self.flush.word());
        // auditd takes `freq` with the two that flush now and then only.
        let freq = match self.flush {
            Flush::Incremental | Flush::IncrementalAsync => FREQUENCY,
            _ => 0,
        };
        format!(
            "local_events = yes\nwrite_logs = yes\nlog_file = {}\nlog_group = root\nlog_format = {format}\n\
             flush = {flush}\nfreq = {freq}\nmax_log_file = {max_log_mib}\nnum_logs = {num_logs}\n\
             max_log_file_action = ROTATE\npriority_boost = 4\nname_format = NONE\n\
             space_left = 2\nspace_left_action = IGNORE\nadmin_space_left = 1\n\
             admin_space_left_action = IGNORE\ndisk_full_action = {disk_full_action}\n\
             disk_error_action = SUSPEND\nuse_libwrap = no\ndistribute_network = no\n\
             q_depth = 2000\noverflow_action = IGNORE\nmax_restarts = 10\nplugin_dir = {}\n\
             end_of_event_timeout = 2\n",
            log.display(),
            self.plugins().display(),
        )
    }

    fn plugins(&self) -> PathBuf {
        self.directory.join("plugins.d")
    }

    /// Where a slow plugin writes the last marker that it read.
    fn seen(&self) -> PathBuf {
        self.directory.join("seen")
    }

    fn write(&self) -> io::Result<()> {
        let mut private = fs::DirBuilder::new();
        private.recursive(true).mode(0o700).create(self.plugins())?;
        write_file(&self.directory.join("auditd.conf"), &self.text(), 0o640)?;
        if let Some(plugin) = &self.plugin {
            let program = self.directory.join("plugin");
            // auditd takes a plugin of this mode only.
            write_file(&program, &plugin.script(&self.seen()), 0o750)?;
            let text = format!(
                "active = yes\ndirection = out\npath = {}\ntype = always\nformat = string\n",
                program.display()
            );
            write_file(&self.plugins().join("weigh.conf"), &text, 0o640)?;
        }
        Ok(())
    }
}

fn write_file(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)) // whatever the umask
}

/// Where `auditd` is, or a sentence that says how to get it.
///
/// # Errors
/// It is not installed, or another user can change it.
pub fn find_auditd() -> Result<PathBuf, String> {
    program::find("auditd")?.ok_or_else(|| {
        "`auditd` is not installed: install the package `auditd` (Debian, Ubuntu) or `audit` (Fedora)"
            .into()
    })
}

/// A running auditd of ours; dropping this ends it.
pub struct Auditd {
    child: Child,
    configuration: AuditdConfiguration,
    /// Process of the plugin, as it was seen first. auditd starts one anew that ends.
    plugin: Option<u32>,
}

impl Auditd {
    /// Starts it. It ends with us, too: the guard's journal can name it only once it runs.
    ///
    /// # Errors
    /// Where the configuration cannot be written or the program not be executed.
    pub fn spawn(program: &Path, configuration: AuditdConfiguration) -> io::Result<Auditd> {
        configuration.write()?;
        let mut command = start::command(program, Inherited::Fixed);
        command
            .args(["-n", "-s", "nochange", "-c"])
            .arg(&configuration.directory)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        end_with_us(&mut command, Signal::TERM);
        Ok(Auditd { child: command.spawn()?, configuration, plugin: None })
    }

    /// Waits until the kernel sends it the records.
    ///
    /// # Errors
    /// A sentence, where it ended instead.
    pub fn wait_until_registered(&mut self, client: &mut Client) -> Result<(), String> {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            let status = client.status().map_err(|error| error.to_string())?;
            if status.pid == self.pid() {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait().map_err(|error| error.to_string())? {
                return Err(format!(
                    "auditd does not start with the configuration {} ({status}); see the system's log",
                    self.configuration.directory.join("auditd.conf").display()
                ));
            }
            if Instant::now() > deadline {
                return Err(
                    "auditd started, but did not register with the kernel as the receiver of \
                            records"
                        .into(),
                );
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the configuration that auditd was started with.
    pub fn configuration(&self) -> &AuditdConfiguration {
        &self.configuration
    }

    /// Returns true if auditd has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// The end of the log up to this text, once auditd has written it. After a rotation, the end of the
    /// previous file counts too.
    ///
    /// # Errors
    /// One of the files cannot be read. This is different from "not written yet".
    pub fn written_until(&self, text: &str) -> io::Result<Option<Vec<u8>>> {
        log_until(&self.configuration.log(), text)
    }

    /// Returns true if there is no plugin, or its process is the one that was seen first.
    ///
    /// # Errors
    /// The processes of auditd cannot be read.
    pub fn has_its_plugin(&mut self) -> io::Result<bool> {
        if self.configuration.plugin.is_none() {
            return Ok(true);
        }
        let children = children(self.pid())?;
        self.plugin = self.plugin.or_else(|| children.first().copied());
        Ok(self.plugin.is_some_and(|plugin| children.contains(&plugin)))
    }

    /// Returns true if the plugin has read all up to this text. A slow plugin writes down what it has read;
    /// others are done when they rest.
    ///
    /// # Errors
    /// The file that a slow plugin writes cannot be read.
    pub fn plugin_has_read(&self, text: &str) -> io::Result<bool> {
        if !matches!(self.configuration.plugin, Some(Plugin::Slow(_))) {
            return Ok(true);
        }
        match fs::read(self.configuration.seen()) {
            Ok(line) => Ok(line.windows(text.len()).any(|part| part == text.as_bytes())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Processes that the threads of a process have started, and that have not been waited for (proc(5)).
fn children(pid: u32) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let thread = thread?.path();
        let text = match fs::read_to_string(thread.join("children")) {
            // The thread has ended: before the file was opened, or after it.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => continue,
            Err(_) if !thread.try_exists()? => continue,
            text => text?,
        };
        for word in text.split_whitespace() {
            let child = word.parse::<u32>();
            found.push(child.map_err(|error| io::Error::other(format!("{word:?}: {error}")))?);
        }
    }
    Ok(found)
}

fn log_until(log: &Path, text: &str) -> io::Result<Option<Vec<u8>>> {
    for path in [log.to_owned(), log.with_extension("log.1")] {
        match tail(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let problem = format!("cannot read {}: {error}", path.display());
                return Err(io::Error::new(error.kind(), problem));
            }
            Ok(mut tail) => {
                let at = tail.windows(text.len()).position(|part| part == text.as_bytes());
                if let Some(at) = at {
                    tail.truncate(at + text.len());
                    return Ok(Some(tail));
                }
            }
        }
    }
    Ok(None)
}

impl Drop for Auditd {
    fn drop(&mut self) {
        let Some(pid) = Pid::from_raw(self.child.id() as i32) else { return };
        let _ = kill_process(pid, Signal::TERM);
        // It may have been stopped.
        let _ = kill_process(pid, Signal::CONT);
        let deadline = Instant::now() + END_LIMIT;
        while !self.has_ended() {
            if Instant::now() > deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

fn tail(path: &Path) -> io::Result<Vec<u8>> {
    /// Bytes that other processes may have caused behind the text.
    const TAIL_BYTES: u64 = 64 << 10;
    let mut file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(2 * TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::message;
    use crate::netlink::tests::{answer, client};

    /// A different program in place of auditd.
    fn sleeping(home: &Path) -> Auditd {
        let configuration = AuditdConfiguration::new(home.into(), Flush::None, None);
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        Auditd { child, configuration, plugin: None }
    }

    #[test]
    fn it_is_registered_once_the_kernel_names_its_process() {
        const ACKNOWLEDGED: u16 = libc::NLMSG_ERROR as u16;
        let home = tempfile::tempdir().unwrap();
        let mut auditd = sleeping(home.path());
        let (mut client, kernel) = client();
        let status = |sequence: u32, pid: u32| {
            let words: Vec<u8> =
                (0..11).flat_map(|at| if at == 3 { pid } else { 0 }.to_ne_bytes()).collect();
            answer(&kernel, ACKNOWLEDGED, sequence, &[0; 4]);
            answer(&kernel, message::GET, sequence, &words);
        };
        status(1, auditd.child.id());
        assert_eq!(auditd.wait_until_registered(&mut client), Ok(()));
        status(2, 0);
        status(3, auditd.child.id());
        assert_eq!(auditd.wait_until_registered(&mut client), Ok(()));
        auditd.child.kill().unwrap();
        auditd.child.wait().unwrap();
        status(4, 0);
        let problem = auditd.wait_until_registered(&mut client).unwrap_err();
        assert!(problem.starts_with("auditd does not start with the configuration "), "{problem}");
    }

    #[test]
    fn it_is_asked_to_end_and_its_log_is_read_until_then() {
        let home = tempfile::tempdir().unwrap();
        let mut auditd = sleeping(home.path());
        assert_eq!(auditd.pid(), auditd.child.id());
        assert!(!auditd.has_ended() && auditd.written_until("a marker").unwrap().is_none());
        fs::write(auditd.configuration().log(), "first\na marker\nlast").unwrap();
        assert_eq!(auditd.written_until("marker").unwrap(), Some(b"first\na marker".to_vec()));
        auditd.child.kill().unwrap();
        auditd.child.wait().unwrap();
        assert!(auditd.has_ended());
        let auditd = sleeping(home.path());
        let process = format!("/proc/{}", auditd.pid());
        assert!(Path::new(&process).exists());
        drop(auditd);
        assert!(!Path::new(&process).exists(), "it is reaped");
    }

    #[test]
    fn the_configuration_keeps_to_its_own_directory() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("auditd");
        let words = ["none", "incremental", "incremental_async", "data", "sync"];
        assert_eq!(Flush::ALL.map(Flush::word), words);
        for flush in Flush::ALL {
            let text =
                AuditdConfiguration::new(directory.clone(), flush, Some(Plugin::Discard)).text();
            let value = |key: &str| {
                let lines: Vec<&str> = text.lines().filter(|line| line.starts_with(key)).collect();
                assert_eq!(lines.len(), 1, "{key}: {text}");
                lines[0].split_once(" = ").unwrap().1.to_owned()
            };
            assert_eq!(value("flush "), flush.word());
            let is_now_and_then = matches!(flush, Flush::Incremental | Flush::IncrementalAsync);
            assert_eq!(value("freq "), if is_now_and_then { "50" } else { "0" });
            for path in [value("log_file "), value("plugin_dir ")] {
                assert!(Path::new(&path).starts_with(&directory), "{path}");
            }
        }
    }

    #[test]
    fn a_log_that_cannot_be_read_is_not_one_without_the_text() {
        let home = tempfile::tempdir().unwrap();
        let log = home.path().join("audit.log");
        assert_eq!(log_until(&log, "marker").unwrap(), None, "not written yet");
        fs::write(log.with_extension("log.1"), "a marker\n").unwrap();
        fs::write(&log, "other\n").unwrap();
        let is_there = |text: &str| log_until(&log, text).unwrap().is_some();
        assert!(is_there("marker") && is_there("the") && !is_there("xyz"));
        fs::remove_file(&log).unwrap();
        fs::create_dir(&log).unwrap();
        let problem = log_until(&log, "marker").unwrap_err().to_string();
        assert!(problem.contains("audit.log"), "{problem}");
    }

    #[test]
    fn the_format_is_seen_in_the_log() {
        let marker = "type=TRUSTED_APP msg=audit(1.2:3): pid=1 msg='x'";
        let call = "type=SYSCALL msg=audit(1.2:3): syscall=3 key=(null)";
        let of = |added: &str| LogFormat::of_log(format!("{call}{added}\n{marker}\n").as_bytes());
        assert_eq!(LogFormat::of_log(marker.as_bytes()), None);
        assert_eq!(of(""), Some(LogFormat::Raw));
        assert_eq!(of("\x1d"), Some(LogFormat::Raw), "nothing was added");
        assert_eq!(of("\x1dARCH=x86_64 SYSCALL=close"), Some(LogFormat::Enriched));
        for format in [LogFormat::Raw, LogFormat::Enriched] {
            let mut configuration = AuditdConfiguration::new("/x".into(), Flush::None, None);
            configuration.format = format;
            let line = format!("\nlog_format = {}\n", format.word());
            assert!(configuration.text().contains(&line), "{}", configuration.text());
        }
    }

    #[test]
    fn a_plugin_is_there_if_it_was_asked_for() {
        let home = tempfile::tempdir().unwrap();
        for (name, plugin) in [("with", Some(Plugin::Discard)), ("without", None)] {
            let (directory, has_plugin) = (home.path().join(name), plugin.is_some());
            AuditdConfiguration::new(directory.clone(), Flush::None, plugin).write().unwrap();
            assert!(directory.join("auditd.conf").exists());
            assert_eq!(directory.join("plugins.d/weigh.conf").exists(), has_plugin);
        }
    }

    #[test]
    fn a_plugin_is_one_that_only_root_can_change_or_a_delay() {
        let delay = |time| Plugin::parse(None, Some(time));
        assert_eq!(delay("2ms"), Ok(Some(Plugin::Slow(Duration::from_millis(2)))));
        for wrong in ["1s", "0ms", "-1ms", "soon"] {
            assert!(delay(wrong).unwrap_err().contains("takes up to 100ms"), "{wrong}");
        }
        assert!(
            Plugin::parse(Some("/no/such"), None).unwrap_err().starts_with("plugin=/no/such: ")
        );
        assert!(
            Plugin::parse(Some("/bin/cat"), Some("1ms")).unwrap_err().contains("use one of them")
        );
    }

    /// A name with a quote would end the word, and what follows would be executed.
    #[test]
    fn a_plugin_of_the_user_and_its_arguments_are_words_of_its_script() {
        let arguments = vec!["--config".to_owned(), "/etc/$(id)".to_owned()];
        let plugin = Plugin::Program("/opt/it's; id".into(), arguments);
        let script = plugin.script(Path::new("/seen"));
        assert_eq!(script, "#!/bin/sh\nexec '/opt/it'\\''s; id' '--config' '/etc/$(id)'\n");
        assert_eq!(plugin.what(), "is /opt/it's; id --config /etc/$(id)");
        let read = Plugin::parse(Some("/bin/cat  -u x"), None).unwrap().unwrap();
        assert!(read.what().ends_with("cat -u x"), "{read:?}");
        for (wrong, said) in [(" ", "takes a program"), ("/etc -v", "/etc is no program")] {
            let refused = Plugin::parse(Some(wrong), None).unwrap_err();
            assert!(refused.contains(said), "{refused}");
        }
    }

    /// It reads the records that wait for it, and only then says that it saw the marker.
    #[test]
    fn a_slow_plugin_writes_down_the_marker_when_it_has_read_it() {
        let home = tempfile::tempdir().unwrap();
        let mut auditd = sleeping(home.path());
        auditd.configuration.plugin = Some(Plugin::Slow(Duration::from_millis(1)));
        assert!(!auditd.plugin_has_read("marker").unwrap());
        let script = Plugin::Slow(Duration::from_millis(1)).script(&auditd.configuration.seen());
        let records = "type=SYSCALL msg=audit(1.2:3): a='marker'\ntype=TRUSTED_APP msg='weigh 7'\n";
        let run = Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).spawn();
        let mut plugin = run.unwrap();
        std::io::Write::write_all(&mut plugin.stdin.take().unwrap(), records.as_bytes()).unwrap();
        assert!(plugin.wait().unwrap().success());
        assert!(auditd.plugin_has_read("weigh 7'").unwrap());
        assert!(!auditd.plugin_has_read("marker").unwrap());
    }
}
