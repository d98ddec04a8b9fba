//! Surroundings of the kernel: hypervisor, container, distribution, C library, power, daemons.

use std::collections::BTreeSet;

use crate::machine::source::Source;

/// Whose virtual machine this is; `None` on hardware.
pub(super) fn hypervisor(source: Source) -> Option<String> {
    if let Some(kind) = source.text("/sys/hypervisor/type") {
        return Some(kind);
    }
    let flags = source.value("/proc/cpuinfo", "flags", ':').unwrap_or_default();
    let vendor = source.text("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
    // AArch64 has no such flag; there only the firmware's vendor tells.
    let firmware = ["QEMU", "VMware", "Xen", "innotek", "Amazon EC2", "Google", "Microsoft"];
    let virtual_vendor = firmware.iter().any(|name| vendor.starts_with(name));
    let flagged = flags.split(' ').any(|flag| flag == "hypervisor");
    let aarch64_guest = flags.is_empty() && virtual_vendor;
    if !flagged && !aarch64_guest {
        return None;
    }
    if virtual_vendor {
        return Some(vendor);
    }
    // A small virtual machine has no firmware tables, but its kernel knows its hypervisor's clock.
    let clocks = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    let clocks = source.text(clocks).unwrap_or_default();
    let known = [("kvm-clock", "kvm"), ("hyperv", "hyperv"), ("xen", "xen"), ("vmware", "vmware")];
    let by_clock = known.iter().find(|(clock, _)| clocks.contains(clock));
    Some(by_clock.map_or("unknown", |(_, name)| name).to_string())
}

/// Returns the container type; `None` outside a container.
///
/// An engine's mark alone is no proof, as a virtual machine that was made from a container's image has it
/// too. A mark that nothing confirms and nothing contradicts is named as such.
pub(super) fn container(source: Source) -> Option<String> {
    if let Some(named) = source.text("/run/systemd/container").or_else(|| named_by_init(source)) {
        return Some(named);
    }
    if is_of_lxc(source) {
        return Some("lxc".to_owned());
    }
    let marks = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];
    let mark = marks.iter().find(|(file, _)| source.path(file).exists());
    if let Some((_, engine)) = mark.filter(|_| is_confirmed(source)) {
        return Some((*engine).to_owned());
    }
    // Only the first process namespace shows the kernel's own threads, whose parent is process 2.
    let is_first_namespace = source.text("/proc/2/comm").as_deref() == Some("kthreadd");
    let has_processes = source.path("/proc/self").exists();
    match mark {
        _ if is_first_namespace => None,
        Some((file, engine)) => Some(format!("perhaps {engine}: only {file} shows it")),
        None if has_processes && source.bytes("/proc/1/environ").is_none() => Some(
            "perhaps: no kernel thread is visible, and only root may read /proc/1/environ, which says more"
                .to_owned(),
        ),
        None => None,
    }
}

/// Returns true if files that every user may read show LXC, LXD or Incus: the files of `/proc` that it
/// replaces, the socket for guests, or the control group.
fn is_of_lxc(source: Source) -> bool {
    const SOCKETS: [&str; 3] = ["/dev/lxd/sock", "/dev/incus/sock", "/dev/.lxc-boot-id"];
    let text = |file| source.text(file).unwrap_or_default();
    let groups = ["/proc/self/cgroup", "/proc/1/cgroup"].map(text).concat();
    let mounts = text("/proc/self/mounts");
    let is_of_lxcfs = |line: &str| {
        let mut words = line.split(' ').skip(1);
        words.next().is_some_and(|target| target.starts_with("/proc/"))
            && words.next() == Some("fuse.lxcfs")
    };
    SOCKETS.iter().any(|file| source.path(file).exists())
        || ["/lxc/", "/lxc.payload"].iter().any(|name| groups.contains(name))
        || mounts.lines().any(is_of_lxcfs)
}

/// Returns the `container=` of the first process's environment, which LXC, nspawn and podman set.
fn named_by_init(source: Source) -> Option<String> {
    let environment = source.bytes("/proc/1/environ")?;
    let mut variables = environment.split(|byte| *byte == 0);
    let name = variables.find_map(|variable| variable.strip_prefix(b"container="))?;
    (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
}

/// Returns true if a container engine mounted the root or files in `/etc`, or named our control group.
fn is_confirmed(source: Source) -> bool {
    const OF_ENGINES: [&str; 3] = ["/etc/hostname", "/etc/hosts", "/etc/resolv.conf"];
    let mounts = source.text("/proc/self/mounts").unwrap_or_default();
    let is_by_engine = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let (target, kind) = (words.next().unwrap_or_default(), words.next());
        OF_ENGINES.contains(&target) || (target == "/" && kind == Some("overlay"))
    };
    let groups = source.text("/proc/self/cgroup").unwrap_or_default();
    let engines = ["/docker", "/libpod", "/kubepods", "/crio-"];
    mounts.lines().any(is_by_engine) || engines.iter().any(|name| groups.contains(name))
}

/// The name of the distribution, as it shows itself.
pub(super) fn distribution(source: Source) -> Option<String> {
    let name = |file| source.value(file, "PRETTY_NAME", '=');
    let name = name("/etc/os-release").or_else(|| name("/usr/lib/os-release"))?;
    Some(name.trim_matches(['"', '\'']).to_string())
}

/// Returns the C library's own name: in glibc a line like `GNU C Library (Debian GLIBC 2.36-9)
/// stable release version 2.36.`
pub(super) fn libc_name(source: Source) -> Option<String> {
    const TITLE: &[u8] = b"GNU C Library ";
    let triple = format!("/lib/{}-linux-gnu", std::env::consts::ARCH);
    let directories = [triple.as_str(), "/lib64", "/usr/lib64", "/lib", "/usr/lib"];
    for directory in directories {
        let Some(library) = source.bytes(&format!("{directory}/libc.so.6")) else { continue };
        let start = library.windows(TITLE.len()).position(|window| window == TITLE)?;
        let line = library[start..].split(|byte| matches!(byte, b'\n' | 0)).next()?;
        return Some(String::from_utf8_lossy(line).trim_end_matches('.').to_string());
    }
    source.names("/lib").iter().any(|name| name.starts_with("ld-musl-")).then(|| "musl".to_string())
}

/// Returns true if a process of this name runs; `None` where no process can be seen.
pub(super) fn runs(source: Source, name: &str) -> Option<bool> {
    let is_process = |entry: &String| entry.bytes().all(|byte| byte.is_ascii_digit());
    let mut names = (source.names("/proc").into_iter().filter(is_process))
        .filter_map(|process| source.text(&format!("/proc/{process}/comm")))
        .peekable();
    names.peek()?;
    Some(names.any(|found| found == name))
}

/// Number of terminals with a session, as each interactive user has one; `None` without `/proc`.
pub(super) fn interactive_users(source: Source) -> Option<usize> {
    let stats = source.names("/proc").into_iter().filter_map(|process| {
        let pid: u32 = process.parse().ok()?;
        Some((pid, source.text(&format!("/proc/{pid}/stat"))?))
    });
    let stats: Vec<(u32, String)> = stats.collect();
    // Behind the name, which may hold anything: state, parent, group, session, terminal.
    let terminal = |(pid, stat): &(u32, String)| {
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let is_leader = fields.get(3)?.parse() == Ok(*pid);
        fields.get(4)?.parse::<u32>().ok().filter(|terminal| is_leader && *terminal != 0)
    };
    let terminals: BTreeSet<u32> = stats.iter().filter_map(terminal).collect();
    (!stats.is_empty()).then_some(terminals.len())
}

/// Returns true if the machine runs on its battery; `None` without a battery. A mouse's battery,
/// with the scope `Device`, does not count.
pub(super) fn on_battery(source: Source) -> Option<bool> {
    let directory = "/sys/class/power_supply";
    let status = |supply: String| {
        let text = |file| source.text(&format!("{directory}/{supply}/{file}"));
        let is_ours = text("type")? == "Battery" && text("scope").as_deref() != Some("Device");
        is_ours.then(|| text("status")).flatten()
    };
    let statuses: Vec<String> = source.names(directory).into_iter().filter_map(status).collect();
    (!statuses.is_empty()).then(|| statuses.iter().any(|status| status == "Discharging"))
}

#[cfg(test)]
mod tests {
    use crate::machine::source::tests::root_with;
    use weigh_model::facts::Facts;

    const QEMU: [(&str, &str); 2] = [
        ("/proc/cpuinfo", "processor : 0\nmodel name : AMD EPYC\nflags : fpu hypervisor avx\n"),
        ("/sys/class/dmi/id/sys_vendor", "QEMU\n"),
    ];

    fn read(files: &[(&str, &str)]) -> Facts {
        crate::machine::facts::read_from(root_with(files).path())
    }

    #[test]
    fn each_terminal_with_a_session_is_an_interactive_user() {
        let machine = read(&[
            ("/proc/7/stat", "7 (login) S 1 7 7 34816 7 0"),
            ("/proc/9/stat", "9 (a b) c) S 1 9 9 34817 9 0"),
            ("/proc/11/stat", "11 (its child) S 9 11 9 34817 11 0"),
            ("/proc/12/stat", "12 (daemon) S 1 12 12 0 -1 0"),
        ]);
        assert_eq!(machine.interactive_users, Some(2));
        assert_eq!(read(&[]).interactive_users, None);
    }

    #[test]
    fn hypervisors_are_named_by_firmware_or_by_clock() {
        assert_eq!(read(&QEMU).hypervisor.as_deref(), Some("QEMU"));
        assert_eq!(read(&QEMU).cpu_model, "AMD EPYC");
        let clocks = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
        let small = read(&[QEMU[0], (clocks, "kvm-clock tsc acpi_pm\n")]);
        assert_eq!(small.hypervisor.as_deref(), Some("kvm"));
        let hardware =
            read(&[("/proc/cpuinfo", "flags : fpu\n"), ("/sys/class/dmi/id/sys_vendor", "Google")]);
        assert_eq!(hardware.hypervisor, None);
        let xen = read(&[("/sys/hypervisor/type", "xen\n")]);
        assert_eq!(xen.hypervisor.as_deref(), Some("xen"));
    }

    #[test]
    fn the_distribution_and_its_library_are_named() {
        let facts = read(&[
            ("/usr/lib/os-release", "ID=x\nPRETTY_NAME=\"Example Linux 7\"\n"),
            ("/lib64/libc.so.6", "\u{0}x\u{0}GNU C Library (GNU libc) release version 2.36.\nmore"),
        ]);
        assert_eq!(facts.distribution.as_deref(), Some("Example Linux 7"));
        assert_eq!(facts.libc.as_deref(), Some("GNU C Library (GNU libc) release version 2.36"));
        assert_eq!(read(&[("/lib/ld-musl-x86_64.so.1", "")]).libc.as_deref(), Some("musl"));
    }

    #[test]
    fn a_mark_of_a_container_needs_further_evidence() {
        let found = |more: &[(&str, &str)]| {
            let files: Vec<_> = [("/.dockerenv", "")].iter().chain(more).copied().collect();
            read(&files).container
        };
        let is_docker = Some("docker".to_owned());
        let of_engine = "overlay / overlay rw 0 0\n/dev/sda1 /etc/hosts ext4 rw 0 0\n";
        assert_eq!(found(&[("/proc/self/mounts", of_engine)]), is_docker);
        assert_eq!(
            found(&[("/proc/self/cgroup", "0::/system.slice/docker-1f.scope\n")]),
            is_docker
        );
        let of_machine = ("/proc/self/mounts", "/dev/vda / ext4 rw 0 0\n");
        let kernel_thread = ("/proc/2/comm", "kthreadd\n");
        assert_eq!(found(&[of_machine, kernel_thread]), None, "a machine made from an image");
        let unsure = found(&[of_machine]).unwrap();
        assert_eq!(unsure, "perhaps docker: only /.dockerenv shows it");
        let init = [("/proc/1/environ", "PATH=/bin\0container=lxc\0TERM=linux\0")];
        assert_eq!(read(&init).container.as_deref(), Some("lxc"));
        assert_eq!(read(&[kernel_thread]).container, None);
    }

    #[test]
    fn without_the_environment_of_init_what_everyone_may_read_shows_lxc() {
        let found = |file: &str, text: &str| read(&[(file, text)]).container;
        let lxc = Some("lxc".to_owned());
        let mounts = "/proc/self/mounts";
        assert_eq!(found(mounts, "lxcfs /proc/cpuinfo fuse.lxcfs rw 0 0\n"), lxc);
        assert_eq!(found("/proc/1/cgroup", "0::/lxc.payload.web/init.scope\n"), lxc);
        assert_eq!(found("/dev/lxd/sock", ""), lxc);
        // A host of such containers has the file system, but at a place of its own.
        let of_host = (mounts, "lxcfs /var/lib/lxcfs fuse.lxcfs rw 0 0\n");
        let kernel_thread = ("/proc/2/comm", "kthreadd\n");
        assert_eq!(read(&[of_host, kernel_thread]).container, None);
        let unknown = read(&[of_host]).container.unwrap();
        assert!(
            unknown.starts_with("perhaps: no kernel thread is visible, and only root"),
            "{unknown}"
        );
        let readable = ("/proc/1/environ", "TERM=linux\0");
        assert_eq!(read(&[of_host, readable]).container, None);
    }
}
