//! Whatever bytes a file, a program or the kernel gives: a result or a sentence, never a panic, and an end.
//!
//! Real inputs are changed at random, for a second each and with `WEIGH_HARD=1` for ten minutes. Where one
//! panics, the message says the seed and has the input; `WEIGH_SEED` tries the same sequence again.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::fuzzing::{fuzz, texts};
use linux_audit::features::Features;
use linux_audit::record;
use linux_audit::rule::Rule;
use linux_audit::rule_set::RuleSet;
use linux_audit::status::Status;
use linux_audit::tally::RecordTally;
use weigh_host::undo::journal::Journal;
use weigh_import as import;
use weigh_model::label;
use weigh_model::profile::SyscallProfile;
use weigh_model::workload::detail::Detail;
use weigh_model::workload::sample::Sample;
use weigh_model::workload::suite;
use weigh_treatment as treatment;
use wire::{Choice, Packet, VNET_HEADER};

/// The files of a directory below this tree.
fn files(directory: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("WORKSPACE")).join(directory);
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
        "#!/bin/sh\nauditctl -D\n\t-w /a\n-w /etc/b -p wa -k c\td\n- name: {{ x }}\n-b ${N}\n<html>\n",
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
        "{\"apiVersion\":\"v1\",\"kind\":\"SeccompProfile\",\"spec\":{\"defaultAction\":\"SCMP_ACT_ALLOW\",\
         \"flags\":[\"SECCOMP_FILTER_FLAG_LOG\"]}}",
        "apiVersion: v1\nkind: Pod\n",
        "# minijail\n@include /a\nopen[arch=x86_64]: arg1 == 0x1 || arg2 in 3; return EPERM\nread: 1\n",
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

/// Pieces as a TUN device gives them: TCP over IPv4 and IPv6, UDP, and one that is not to be cut.
fn pieces() -> Vec<Vec<u8>> {
    let piece = |gso_type: u8, transport: u16, header: u16, protocol: u8| {
        let checksum_offset = if protocol == 6 { 16_u16 } else { 6 };
        let mut bytes = vec![1, gso_type];
        for word in [transport + header, 1000, transport, checksum_offset] {
            bytes.extend(word.to_ne_bytes());
        }
        let total = transport + header + 2500;
        let mut ip = vec![0; usize::from(total)];
        if transport == 20 {
            ip[0] = 0x45;
            ip[2..4].copy_from_slice(&total.to_be_bytes());
            ip[9] = protocol;
        } else {
            ip[0] = 0x60;
            ip[4..6].copy_from_slice(&(total - 40).to_be_bytes());
            ip[6] = protocol;
        }
        ip[usize::from(transport) + 12] = 0x80;
        bytes.extend(ip);
        bytes
    };
    vec![
        piece(1, 20, 32, 6),
        piece(4, 40, 32, 6),
        piece(5, 20, 8, 17),
        piece(5, 40, 8, 17),
        vec![0; 90],
    ]
}

#[test]
fn packets_of_a_link() {
    let inputs = pieces();
    assert!(inputs[..4].iter().all(|piece| Packet::new(piece).segments() == 3));
    let mut head = Vec::new();
    fuzz("packets of a link", &inputs, |input| {
        let packet = Packet::new(input);
        let segments = packet.segments();
        let cut = segments / 2;
        for part in [0..segments, 0..cut, cut..segments] {
            if !part.is_empty() {
                let rest = packet.part(part.clone(), &mut head);
                assert!(head.len() + rest.len() <= input.len());
            }
        }
        assert!(
            (0..segments).map(|at| packet.segment_bytes(at)).sum::<usize>() + VNET_HEADER
                >= input.len()
        );
    });
}

#[test]
fn choices_of_packets() {
    let choices = ["1@200%400+3@397%400", "1%", "0.5%x4", "3@400%400"];
    fuzz("choices of packets", &texts(&choices), |input| {
        if let Ok(choice) = String::from_utf8_lossy(input).parse::<Choice>() {
            assert!(choice.to_string().parse::<Choice>().is_ok(), "{choice}");
        }
    });
}
