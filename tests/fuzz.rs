//! Whatever bytes a file, a program or the kernel gives: a result or a sentence, never a panic, and an end.
//!
//! Real inputs are changed at random, for two seconds each and with `WEIGH_HARD=1` for ten minutes. Where one
//! panics, the message says the seed and has the input; `WEIGH_SEED` tries the same sequence again.

mod support;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use linux_audit::features::Features;
use linux_audit::record;
use linux_audit::rule::Rule;
use linux_audit::rule_set::RuleSet;
use linux_audit::status::Status;
use linux_audit::tally::RecordTally;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use weighbridge::archive::{Below, Unpacking, unpack, unpack_image};
use weighbridge::profile::record::SyscallProfile;
use weighbridge::treatment::journal::Journal;
use weighbridge::workload::detail::Detail;
use weighbridge::workload::sample::Sample;
use weighbridge::workload::suite;
use weighbridge::{import, label, treatment};

/// What is put in besides what the inputs themselves have.
const ODD: [&[u8]; 20] = [
    b"",
    b"\0",
    b"\n",
    b"\r\n",
    b"\"",
    b"'",
    b"\\",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"-1",
    b"0",
    b"1e999",
    b"NaN",
    b"null",
    b"18446744073709551616",
    b"9223372036854775807",
    b"{",
    b"[",
    b"|",
    "\u{1b}[31m\u{202e}µ".as_bytes(),
];
const LONGEST: usize = 1 << 16;

/// Changes inputs until the time is up.
fn fuzz(name: &str, inputs: &[Vec<u8>], mut parse: impl FnMut(&[u8])) {
    let seed: u64 = match std::env::var("WEIGH_SEED") {
        Ok(seed) => seed.parse().expect("WEIGH_SEED is a number"),
        Err(_) => rand::random(),
    };
    let time = Duration::from_secs(support::hard(2, 600));
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let (started, mut tried) = (Instant::now(), 0_u64);
    // As they are, first.
    let mut next = inputs.to_vec();
    while started.elapsed() < time {
        let input = next.pop().unwrap_or_else(|| changed(inputs, &mut chance));
        if catch_unwind(AssertUnwindSafe(|| parse(&input))).is_err() {
            panic!("{name}, WEIGH_SEED={seed}, input {tried}: {}", input.escape_ascii());
        }
        tried += 1;
    }
    println!("{name}: {tried} inputs in {time:?}, WEIGH_SEED={seed}");
    assert!(tried > inputs.len() as u64, "{name}: not even the inputs themselves were read");
}

/// One of the inputs, with one to eight changes.
fn changed(inputs: &[Vec<u8>], chance: &mut ChaCha8Rng) -> Vec<u8> {
    let any = |chance: &mut ChaCha8Rng| inputs[chance.random_range(0..inputs.len())].clone();
    let mut input = any(chance);
    for _ in 0..chance.random_range(1..=8) {
        let from = chance.random_range(0..=input.len());
        let to = (from + chance.random_range(0..=16)).min(input.len());
        match chance.random_range(0..7) {
            0 if from < input.len() => input[from] ^= 1 << chance.random_range(0..8),
            1 => drop(input.drain(from..to)),
            2 => drop(input.splice(from..to, ODD[chance.random_range(0..ODD.len())].to_vec())),
            3 => input.truncate(from),
            4 => {
                let again = input[from..to].repeat(chance.random_range(1..64));
                drop(input.splice(to..to, again));
            }
            // The end of another, or of itself.
            5 => {
                let other = any(chance);
                let at = chance.random_range(0..=other.len());
                input.truncate(from);
                input.extend_from_slice(&other[at..]);
            }
            _ => drop(input.splice(from..to, [chance.random()])),
        }
        input.truncate(LONGEST);
    }
    input
}

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// The files of a directory below this tree.
fn files(directory: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let entries = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<Vec<u8>> =
        entries.filter(|path| path.is_file()).map(|path| fs::read(path).unwrap()).collect();
    assert!(!files.is_empty(), "{}", directory.display());
    files
}

/// For readers that take a path: the input as a file, in memory where there is such a file system.
struct AsFile {
    path: PathBuf,
    _directory: tempfile::TempDir,
}

impl AsFile {
    fn new(name: &str) -> AsFile {
        let shared = Path::new("/dev/shm");
        let place = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
        let directory = tempfile::tempdir_in(place).unwrap();
        let path = directory.path().join(name);
        AsFile { path, _directory: directory }
    }

    fn of(&self, input: &[u8]) -> &Path {
        fs::write(&self.path, input).unwrap();
        &self.path
    }
}

#[test]
fn what_workloads_print() {
    let sample = "{\"workload\":\"getppid\",\"operations\":10,\"elapsed_ns\":100,\"user_ns\":50,\
                  \"system_ns\":50,\"voluntary_switches\":0,\"involuntary_switches\":1,\"minor_faults\":0,\
                  \"major_faults\":0,\"total_operations\":12,\"syscalls_per_op\":1,\"unit\":\"ops/s\",\
                  \"rate\":1e8,\"calibration_ms\":0.1,\"kernel_instructions\":null,\"cycles\":7,";
    let latencies = "\"latencies\":{\"clock_ns\":20,\"buckets\":[[0,1],[128,7],[4096,2]]}}";
    let inputs = [
        sample.to_owned() + "\"slices_ns\":[10,20,30]}",
        sample.to_owned() + latencies,
        sample.to_owned() + "\"copies\":2,\"copy_rates\":[5e7,5e7]}",
    ];
    let inputs: Vec<Vec<u8>> = inputs.iter().map(|text| text.clone().into_bytes()).collect();
    fuzz("samples", &inputs, |input| {
        let text = String::from_utf8_lossy(input);
        if let Some(Ok(sample)) = Sample::parse(&text) {
            sample.rate();
        }
        Detail::parse(&text);
    });
}

#[test]
fn rule_files() {
    let inputs = texts(&[
        "## comment\n-D\n-b 8192\n-f 1\n-a always,exit -F arch=b64 -S openat,openat2 -F exit=-EACCES \
         -F auid>=1000 -F auid!=unset -k access\n-w /etc/passwd -p wa -k identity\n-e 2\n",
        "-A never,exit -F arch=b64 -S all -F path=\"/a b\" -F key=x\n-a exclude,never -F msgtype=CWD\n",
        "-a always,exit -F dir=/etc -F perm=wa\r\n-a always,user\n  -i\n--loginuid-immutable\n",
    ]);
    let file = AsFile::new("fuzzed.rules");
    fuzz("rule files", &inputs, |input| drop(RuleSet::read(&[file.of(input).to_owned()])));
}

#[test]
fn suites() {
    let file = AsFile::new("fuzzed.toml");
    let name = [file.path.display().to_string()];
    fuzz("suites", &files("suites"), |input| {
        file.of(input);
        drop(suite::from_files(&name));
    });
}

#[test]
fn labels_of_treatments() {
    let labels = [
        "audit:backlog=64,wait=0,sink=none",
        "audit:rules=/nonexistent/a.rules",
        "seccomp:filters=3",
        "seccomp:profile=/nonexistent/p.json",
        "audit:sink=auditd,flush=incremental",
        "none",
        "audit:rules=\"/a, b+c::d \\\" \\\\\",live+seccomp:compares=5",
        "rootfs:/nonexistent/a.tar::seccomp",
        "rootfs:path=\"/nonexistent, b\"",
        "vm:kernel=\"/boot/x\"::chroot:dir=/srv::audit+seccomp",
    ];
    fuzz("labels", &texts(&labels), |input| {
        drop(treatment::parse(&String::from_utf8_lossy(input)))
    });
}

#[test]
fn labels_of_workloads() {
    let labels = [
        "pipe:copies=4,bytes=64k,bw-pipe@same-cpu",
        "\"/a b, c:d.toml\":copies=2",
        "./dir:x/a.toml:copies=8",
        "syscall x 16",
    ];
    fuzz("workloads", &texts(&labels), |input| {
        drop(label::workloads(&String::from_utf8_lossy(input)))
    });
}

#[test]
fn oci_profiles() {
    let inputs = texts(&[
        "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":1,\"archMap\":[{\"architecture\":\
         \"SCMP_ARCH_X86_64\",\"subArchitectures\":[\"SCMP_ARCH_X86\"]}],\"syscalls\":[{\"names\":[\"read\",\
         \"write\"],\"action\":\"SCMP_ACT_ALLOW\"},{\"names\":[\"personality\"],\
         \"action\":\"SCMP_ACT_ALLOW\",\
         \"args\":[{\"index\":0,\"value\":8,\"valueTwo\":0,\"op\":\"SCMP_CMP_MASKED_EQ\"}],\
         \"includes\":{\"caps\":[\"CAP_SYS_ADMIN\"],\"minKernel\":\"4.8\"},\
         \"excludes\":{\"arches\":[\"s390\"]}}]}",
        "{\"linux\":{\"seccomp\":{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"architectures\":[\
         \"SCMP_ARCH_X86_64\"],\"syscalls\":[{\"name\":\"kexec_load\",\"action\":\"SCMP_ACT_KILL\"}]}}}",
    ]);
    let file = AsFile::new("fuzzed.json");
    let label = format!("seccomp:profile={}", file.path.display());
    fuzz("OCI profiles", &inputs, |input| {
        file.of(input);
        drop(treatment::parse(&label));
    });
}

#[test]
fn what_is_imported() {
    fuzz("imports", &files("tests/fixtures/import"), |input| {
        drop(import::read("fuzzed", input, None));
    });
}

/// Only read: undoing what chance writes would do it.
#[test]
fn journals() {
    let journal = r#"{"pid":1,"boot_id":"a-b","entries":[{"kind":"audit","state":{"enabled":0}},
        {"kind":"scratch directory","state":"/tmp/weigh-x"},{"kind":"settings","state":[]}]}"#;
    fuzz("journals", &texts(&[journal]), |input| drop(serde_json::from_slice::<Journal>(input)));
}

#[test]
fn audit_records() {
    let inputs = texts(&[
        "audit(1700000000.123:4567): arch=c000003e syscall=110 success=yes exit=1 a0=0 items=1 ppid=1 pid=2 \
         auid=4294967295 uid=0 comm=\"a\" exe=\"/bin/a\" subj=unconfined key=(null)",
        "audit(1700000000.123:4567): cwd=\"/tmp\"",
        "audit(1.2:3): item=0 name=\"/tmp/canary\" inode=1 dev=fe:00 mode=0100600 ouid=0 nametype=NORMAL",
        "audit(1.2:3): proctitle=2F62696E2F61",
    ]);
    fuzz("audit records", &inputs, |input| {
        record::serial(input);
        record::number(input, "auid");
        record::field(input, "name");
        let mut tally = RecordTally::new(1000, 1001, "/tmp/canary".into());
        for kind in [1300, 1302, 1307, 1320, 1327] {
            tally.count(kind, input, input.len() as u64);
        }
        tally.close_window(1, 1000);
    });
}

#[test]
fn what_the_kernel_says_of_auditing() {
    let watch = Rule::watch(Path::new("/etc/passwd"), "key").as_bytes().to_vec();
    let calls = Rule::always_exit_of(&[0, 59, 257], 1000).as_bytes().to_vec();
    fuzz("rules and status", &[watch, calls, vec![0; 44], vec![1; 16]], |input| {
        drop(Rule::from_bytes(input.to_vec()).decode());
        Status::parse(input);
        Features::parse(input);
    });
}

/// Our own, and the tables of strace and perf trace.
#[test]
fn profiles() {
    let mut inputs = files("tests/fixtures/profile");
    inputs.extend(texts(&[
        r#"{"schema":"weighbridge/profile/1","command":["ls"],"machine":{},"processes":1,"elapsed_s":0.1,
            "plain_elapsed_s":0.1,"user_s":0.01,"system_s":0.02,"calls":{"read":10,"openat":3}}"#,
    ]));
    fuzz("profiles", &inputs, |input| drop(SyscallProfile::parse(input)));
}

/// What root unpacks, and what lies beside it.
struct Unpacked(tempfile::TempDir);

impl Unpacked {
    fn new() -> Unpacked {
        let shared = Path::new("/dev/shm");
        let place = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
        let unpacked = Unpacked(tempfile::tempdir_in(place).unwrap());
        fs::create_dir(unpacked.0.path().join("victim")).unwrap();
        fs::write(unpacked.0.path().join("victim/file"), "precious").unwrap();
        unpacked
    }

    /// An empty tree.
    fn tree(&self) -> PathBuf {
        let tree = self.0.path().join("tree");
        let _ = fs::remove_dir_all(&tree);
        fs::create_dir(&tree).unwrap();
        tree
    }

    /// Nothing was written elsewhere, nor more than allowed.
    fn assert_contained(&self) {
        let mut names: Vec<_> =
            fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert!(names.iter().all(|name| ["image", "tree", "victim"].iter().any(|it| name == it)));
        let victim = self.0.path().join("victim");
        assert_eq!(fs::read_dir(&victim).unwrap().count(), 1);
        let file = fs::symlink_metadata(victim.join("file")).unwrap();
        let (links, mode) = (file.nlink(), file.mode() & 0o7777);
        assert_eq!((links, mode), (1, 0o644), "a link to it, or another mode");
        assert_eq!(fs::read(victim.join("file")).unwrap(), b"precious");
    }
}

const MOST_UNPACKED: u64 = 1 << 20;

fn unpack_some(input: &[u8], tree: &Path, is_layer: bool) {
    let mut goes_on = |_| true;
    let mut unpacking = Unpacking::new(MOST_UNPACKED, 1000, &mut goes_on);
    let _ = unpack(input, &Below::open(tree).unwrap(), is_layer, &mut unpacking);
}

/// Nearly all that is changed would be refused for the sum in its header alone.
fn with_sums(input: &[u8]) -> Vec<u8> {
    let mut input = input.to_vec();
    for block in input.chunks_exact_mut(512).filter(|block| &block[257..262] == b"ustar") {
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    input
}

/// Archives with every kind of entry, hostile ones too.
fn tars() -> Vec<Vec<u8>> {
    let of = |entries: &[(tar::EntryType, &str, &str, &str)]| {
        let mut bytes = Vec::new();
        for (kind, path, target, content) in entries {
            let mut header = tar::Header::new_ustar();
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
            header.set_entry_type(*kind);
            header.set_mode(0o644);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(1);
            header.set_size(content.len() as u64);
            header.set_cksum();
            bytes.extend_from_slice(header.as_bytes());
            bytes.extend_from_slice(content.as_bytes());
            bytes.resize(bytes.len().next_multiple_of(512), 0);
        }
        bytes
    };
    use tar::EntryType as Is;
    vec![
        of(&[
            (Is::Directory, "./", "", ""),
            (Is::Directory, "a/", "", ""),
            (Is::Regular, "a/b", "", "content"),
            (Is::Link, "a/c", "a/b", ""),
            (Is::Symlink, "d", "a", ""),
            (Is::Fifo, "e", "", ""),
            (Is::Char, "f", "", ""),
        ]),
        of(&[
            (Is::Symlink, "out", "../victim", ""),
            (Is::Regular, "out/file", "", "gone"),
            (Is::Link, "h", "out/file", ""),
            (Is::Regular, "h", "", "gone"),
            (Is::Regular, "../victim/new", "", "x"),
            (Is::Directory, "out/file", "", ""),
        ]),
        of(&[
            (Is::Regular, "a/.wh.b", "", ""),
            (Is::Regular, "a/.wh..wh..opq", "", ""),
            (Is::Symlink, "v", "../victim", ""),
            (Is::Regular, "v/.wh.file", "", ""),
            (Is::Regular, ".wh...", "", ""),
        ]),
        of(&[
            (
                Is::XHeader,
                "pax",
                "",
                "26 path=../victim/another\n18 linkpath=/etc\n14 size=99999\n",
            ),
            (Is::Regular, "x", "", "content"),
            (Is::GNULongName, "././@LongLink", "", "../victim/file\0"),
            (Is::Regular, "y", "", "content"),
            (Is::GNULongLink, "././@LongLink", "", "../victim/file\0"),
            (Is::Link, "z", "", ""),
            (Is::GNUSparse, "s", "", "content"),
        ]),
    ]
}

#[test]
fn archives_of_root_file_systems() {
    let place = Unpacked::new();
    fuzz("archives", &tars(), |input| {
        let tree = place.tree();
        unpack_some(input, &tree, false);
        unpack_some(&with_sums(input), &tree, true);
        place.assert_contained();
    });
}

#[test]
fn images_of_containers() {
    let place = Unpacked::new();
    let digest = "a".repeat(64);
    let index = format!(
        r#"{{"manifests":[{{"mediaType":"m","digest":"sha256:{digest}","size":3,
        "platform":{{"os":"linux","architecture":"amd64"}}}}]}}"#
    );
    let inputs = texts(&[
        &index,
        r#"[{"Config":"c","RepoTags":["a:b"],"Layers":["../victim/file","/etc/passwd","0/layer.tar"]}]"#,
        &format!(
            r#"{{"layers":[{{"digest":"sha256:{digest}"}},{{"digest":"sha256:../../victim/file"}}]}}"#
        ),
    ]);
    let image = place.0.path().join("image");
    fs::create_dir_all(image.join("blobs/sha256")).unwrap();
    fs::create_dir(image.join("0")).unwrap();
    fs::write(image.join("0/layer.tar"), &tars()[1]).unwrap();
    fuzz("images", &inputs, |input| {
        for files in [&["index.json", "oci-layout"][..], &["manifest.json"]] {
            files.iter().for_each(|name| fs::write(image.join(name), input).unwrap());
            fs::write(image.join("blobs/sha256").join(&digest), input).unwrap();
            let tree = place.tree();
            fs::remove_dir(&tree).unwrap();
            let mut goes_on = |_| true;
            let mut unpacking = Unpacking::new(MOST_UNPACKED, 1000, &mut goes_on);
            let _ = unpack_image(&image, &tree, &mut unpacking);
            files.iter().for_each(|name| fs::remove_file(image.join(name)).unwrap());
        }
        place.assert_contained();
    });
}
