//! `boot`: arms that are boots of the machine. What reboots here is a machine in qemu; on the machine of the
//! tests `weigh` lacks the capability for it (tests/support/spawn.rs).

use std::fs;

use crate::support::bootable::{BUSYBOX, Machine, QEMU};
use crate::support::{Home, Turn, is_root, skip};

/// Where the coin lets the baseline boot first, and where the treated arm.
const BASELINE_FIRST: &str = "--seed 1";
const TREATED_FIRST: &str = "--seed 2";

/// Why there is no machine to reboot here.
fn is_skipped() -> bool {
    let missing = [QEMU, BUSYBOX].into_iter().find(|file| !fs::exists(file).unwrap());
    match missing {
        _ if !is_root() => skip("root", "needs root"),
        Some(file) => skip("qemu", &format!("there is no {file} (scripts/install-deps vm)")),
        None => return false,
    }
    true
}

fn compare(treatment: &str, more: &str) -> String {
    format!("weigh compare {treatment} -w getppid -w pipe --sample 20ms --yes {more}\n")
}

/// Nothing of an experiment is left on the disk but its database.
fn assert_put_back(machine: &Machine) {
    for directory in ["/etc/rcS.d", "/etc/rc2.d"] {
        assert!(!machine.list(directory).contains("weigh"), "{}", machine.said());
    }
    let state = machine.list("/var/lib/weighbridge");
    assert!(!state.contains("boot") && !state.contains("journal"), "{state}");
}

/// Each sample as work, arm, pair and position, in the order measured.
fn samples(home: &Home) -> Vec<[i64; 4]> {
    let database = home.open_database();
    let mut query =
        database.prepare("SELECT work, arm, pair, position FROM sample ORDER BY number").unwrap();
    let rows = query.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]));
    rows.unwrap().map(Result::unwrap).collect()
}

#[test]
fn this_machine_is_not_booted_by_a_test() {
    let home = Home::new();
    let refused = |arguments: &[&str], parts: &[&str]| home.run(arguments).assert_error(parts);
    let audit = ["compare", "boot:audit", "-w", "getppid", "--yes"];
    refused(&audit, &[if is_root() { "lacks CAP_SYS_BOOT" } else { "only root" }]);
    refused(&["compare", "boot:audit", "boot:cmdline=x"], &["only one treatment"]);
    refused(&["compare", "boot:audit", "--", "true"], &["only what -w names"]);
    refused(&["compare", "boot:audit", "--profiler", "perf record"], &["only what -w names"]);
    let grid = ["compare", "boot:root=/dev/sdz9", "-w", "net:btu-quick", "-w", "getppid"];
    refused(&grid, &["a pair of grids measures each cell in both arms"]);
    refused(&["compare", "boot:audit", "--json", "x"], &["weigh export"]);
    refused(&["compare", "boot:audti"], &["`boot` does not take `audti`"]);
    let mut by_own_build = home.weigh(&audit);
    by_own_build.env("WEIGH_WORKLOADS", "./own");
    home.start(by_own_build).finish().assert_error(&["unset WEIGH_WORKLOADS"]);
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn boots_by_kexec_go_on_by_themselves_also_after_a_power_cut() {
    if is_skipped() {
        return;
    }
    let _turn = Turn::share();
    let more = format!("--budget 1s {BASELINE_FIRST}");
    let machine = Machine::that_does(&compare("boot:cmdline=init_on_alloc=1", &more));
    let mut on = machine.switch_on();
    machine.wait_for("Going down: boot 2", 0, &mut on);
    let before = machine.said().len();
    machine.wait_for("Linux version", before, &mut on);
    drop(on);
    // Until its boot loader has the normal entry; others, in check-hard, wait until that is up.
    let mut on = machine.switch_on();
    machine.wait_for("Going down: the normal entry", before, &mut on);
    let over = machine.said().len();
    machine.wait_for("Booting `normal'", over, &mut on);
    drop(on);
    assert_put_back(&machine);
    let home = machine.into_home();
    let [first, second, third, fourth] = samples(&home)[..] else { panic!("{:?}", samples(&home)) };
    assert_eq!([first[1], second[1], third[1], fourth[1]], [0, 0, 1, 1], "one boot each");
    assert_eq!([first[3], second[3], third[3], fourth[3]], [0, 0, 1, 1]);
    assert_ne!(first[0], second[0]);
    assert_eq!([first[0], second[0]], [third[0], fourth[0]], "in the same order");
    let json = home.json();
    assert_eq!((&json["state"], &json["results"][0]["pairs"]), (&"complete".into(), &1.into()));
    let warnings = json["warnings"].to_string();
    assert!(
        warnings.contains("Boot 2 (`boot:cmdline=init_on_alloc=1`) failed: its kernel"),
        "{warnings}"
    );
    let facts = json["treatments"][0]["facts"].to_string();
    assert!(
        facts.contains("init_on_alloc=1 panic=10") && facts.contains("one-shot boot"),
        "{facts}"
    );
}

#[test]
#[ignore = "it takes two minutes of CPU time; make check-hard"]
fn a_boot_is_compared_with_another_that_is_not_the_normal_one() {
    assert!(!is_skipped());
    let _turn = Turn::share();
    let more = format!("--base boot:cmdline=init_on_free=1 --budget 1s {BASELINE_FIRST}");
    let machine = Machine::that_does(&compare("boot:cmdline=init_on_alloc=1", &more));
    machine.wait_until_off(machine.switch_on());
    assert_put_back(&machine);
    let said = machine.said();
    let home = machine.into_home();
    let arms: Vec<i64> = samples(&home).iter().map(|of| of[1]).collect();
    let json = home.json();
    assert_eq!(arms, [0, 0, 1, 1], "{said}{json:#}");
    assert_eq!(json["state"], "complete");
    assert!(json["baseline"].to_string().contains("init_on_free=1"), "{json:#}");
    let facts = json["treatments"][0]["facts"].to_string();
    assert!(facts.contains("init_on_alloc=1 panic=10"), "{facts}");
}

/// The second system has neither `weigh` nor the database: it mounts the first one for both.
#[test]
#[ignore = "it takes two minutes of CPU time; make check-hard"]
fn another_system_with_its_own_kernel_is_measured_on_the_same_hardware() {
    assert!(!is_skipped());
    let _turn = Turn::share();
    let more = format!("--budget 1s {BASELINE_FIRST}");
    let first =
        format!("{}{}", compare("boot:root=/dev/vda1", ""), compare("boot:root=/dev/vdb", &more));
    let machine = Machine::with_second_system(&first);
    machine.wait_until_off(machine.switch_on());
    let said = machine.said();
    assert!(said.contains("root=/dev/vda1: is the root file system of this system"), "{said}");
    assert_put_back(&machine);
    for directory in ["/etc", "/etc/rc2.d"] {
        let list = machine.list_second(directory);
        assert!(list.contains("rc2.d") || directory != "/etc", "{list}");
        assert!(!list.contains("weigh"), "{list}");
    }
    let home = machine.into_home();
    let arms: Vec<i64> = samples(&home).iter().map(|of| of[1]).collect();
    let json = home.json();
    assert_eq!(arms, [0, 0, 1, 1], "{said}{json:#}");
    assert_eq!(json["state"], "complete");
    let facts = json["treatments"][0]["facts"].to_string();
    assert!(facts.contains("line, except for the boot's number: root=/dev/vdb "), "{facts}");
}

#[test]
#[ignore = "it takes two minutes of CPU time; make check-hard"]
fn a_kernel_that_panics_comes_back_to_the_normal_entry_and_ends_the_experiment() {
    if is_skipped() {
        return;
    }
    let _turn = Turn::share();
    let panics = compare("'boot:cmdline=\"rdinit=/no init=/no\"'", TREATED_FIRST);
    let machine = Machine::that_does(&panics);
    machine.wait_until_off(machine.switch_on());
    assert!(machine.said().matches("] Kernel panic").count() == 2, "{}", machine.said());
    assert_put_back(&machine);
    let home = machine.into_home();
    assert_eq!(samples(&home), Vec::<[i64; 4]>::new());
    let json = home.json();
    let failure = json["failure"].to_string();
    assert!(
        failure.contains("its kernel panicked or hung") && failure.contains("2 times"),
        "{json:#}"
    );
}

/// It hangs before any driver is there. The first boot of all is of the normal kernel, which would stop the
/// watchdog as it goes down.
#[test]
#[ignore = "it waits for a watchdog twice; make check-hard"]
fn a_kernel_that_hangs_is_reset_by_the_watchdog_and_ends_the_experiment() {
    assert!(!is_skipped());
    let _turn = Turn::share();
    let hangs = compare("boot:cmdline=test.hangs", TREATED_FIRST);
    let machine = Machine::that_does(&hangs).with_watchdog();
    machine.wait_until_off(machine.switch_on());
    let said = machine.said();
    assert!(said.contains("The watchdog (i6300ESB timer) resets a boot"), "{said}");
    let ways = said.matches("leaves the watchdog on for boot").count();
    assert_eq!((ways, said.matches("TEST: up").count()), (2, 5), "{said}");
    assert_put_back(&machine);
    let home = machine.into_home();
    assert_eq!(samples(&home), Vec::<[i64; 4]>::new());
    let failure = home.json()["failure"].to_string();
    assert!(
        failure.contains("its kernel panicked or hung") && failure.contains("2 times"),
        "{failure}"
    );
}

/// A reset stops the watchdog, so GRUB's kernel begins without one: the boot sets it when it starts.
#[test]
#[ignore = "it waits for a watchdog twice; make check-hard"]
fn a_boot_that_hangs_while_it_starts_is_reset_by_the_watchdog() {
    assert!(!is_skipped());
    let _turn = Turn::share();
    let more = format!("{TREATED_FIRST} --reboot-by grub");
    let machine = Machine::that_does(&compare("boot:cmdline=test.stalls", &more)).with_watchdog();
    machine.wait_until_off(machine.switch_on());
    let said = machine.said();
    assert!(said.contains("hangs later is reset after 300 s"), "{said}");
    assert_eq!(said.matches("TEST: up").count(), 3, "{said}");
    assert_put_back(&machine);
    let home = machine.into_home();
    assert_eq!(samples(&home), Vec::<[i64; 4]>::new());
    assert!(home.json()["failure"].to_string().contains("2 times"));
}

/// In the second boot, before or while that is measured.
#[test]
#[ignore = "it takes a minute of CPU time; make check-hard"]
fn weigh_restore_ends_it_in_any_boot() {
    if is_skipped() {
        return;
    }
    let _turn = Turn::share();
    let restore = "/etc/rc2.d/S99x";
    let first = format!(
        "cat >{restore} <<END\n#!/bin/sh\nwhile ! pidof boot-weigh; do sleep 0.1; done\nsleep 1\n\
         weigh restore\nEND\nchmod 755 {restore}\n{}",
        compare("boot:audit", "--reboot-by grub")
    );
    let machine = Machine::that_does(&first);
    machine.wait_until_off(machine.switch_on());
    let said = machine.said();
    assert_eq!(said.matches("TEST: up").count(), 2, "{said}");
    assert!(said.contains("Ended the boots of experiment"), "{said}");
    assert_put_back(&machine);
    assert!(!machine.list("/boot/grub").contains("custom.cfg"), "{said}");
    assert_eq!(machine.into_home().json()["state"], "interrupted");
}

/// The first boot of the experiment does this before it measures: weigh cannot go on there, and nothing is
/// made anew.
fn comes_back_after(harm: &str) -> Machine {
    let first = format!(
        "cat >/etc/rc2.d/S50x <<END\n#!/bin/sh\ngrep -q weigh.boot /proc/cmdline && {harm}\nEND\n\
         chmod 755 /etc/rc2.d/S50x\n{}",
        compare("boot:cmdline=init_on_alloc=1", "")
    );
    let machine = Machine::that_does(&first);
    machine.wait_until_off(machine.switch_on());
    let said = machine.said();
    let normal = said.matches("Going down: the normal entry").count();
    assert_eq!((normal, said.matches("TEST: up").count()), (1, 3), "{said}");
    for directory in ["/etc/rcS.d", "/etc/rc2.d"] {
        assert!(!machine.list(directory).contains("weigh"), "{said}");
    }
    machine
}

#[test]
#[ignore = "it takes two minutes of CPU time; make check-hard"]
fn a_boot_that_cannot_go_on_leads_back_to_the_normal_entry() {
    if is_skipped() {
        return;
    }
    let _turn = Turn::share();
    let machine = comes_back_after("mv /var/data/weighbridge /var/data/elsewhere");
    let data = machine.list("/var/data");
    assert!(data.contains("elsewhere") && !data.contains("weighbridge"), "{data}");
    assert!(machine.said().contains("weigh.db is not there in this boot"), "{}", machine.said());
    assert_put_back(&machine);
    let machine = comes_back_after("sed -i s/experiment// /var/lib/weighbridge/boot.json");
    assert!(machine.said().contains("boot.json: missing field"), "{}", machine.said());
}

#[test]
#[ignore = "it takes two minutes of CPU time; make check-hard"]
fn boots_by_grubs_one_shot_entry_leave_it_as_it_was() {
    if is_skipped() {
        return;
    }
    let _turn = Turn::share();
    let more = format!("--reboot-by grub --budget 1s {BASELINE_FIRST}");
    let machine = Machine::that_does(&compare("boot:audit", &more));
    machine.wait_until_off(machine.switch_on());
    assert_put_back(&machine);
    assert!(!machine.list("/boot/grub").contains("custom.cfg"), "{}", machine.said());
    let home = machine.into_home();
    let arms: Vec<i64> = samples(&home).iter().map(|of| of[1]).collect();
    assert_eq!(arms, [0, 0, 1, 1]);
    assert_eq!(home.json()["state"], "complete");
}

/// All orders of boots, with a report at the end that nobody waited for.
fn eight_pairs_have_a_verdict(more: &str) {
    assert!(!is_skipped());
    let _turn = Turn::take();
    let machine = Machine::that_does(&compare("boot:audit", &format!("--pairs 8 --seed 3 {more}")));
    machine.wait_until_off(machine.switch_on());
    assert_put_back(&machine);
    let home = machine.into_home();
    assert_eq!(samples(&home).len(), 2 * 2 * 8);
    let json = home.json();
    assert_eq!((&json["state"], &json["results"][0]["pairs"]), (&"complete".into(), &8.into()));
    let firsts: Vec<i64> = samples(&home).iter().filter(|of| of[3] == 0).map(|of| of[1]).collect();
    assert!(firsts.contains(&0) && firsts.contains(&1), "{firsts:?}");
}

#[test]
#[ignore = "eighteen boots; make check-hard"]
fn eight_pairs_of_boots_by_kexec_have_a_verdict() {
    eight_pairs_have_a_verdict("");
}

#[test]
#[ignore = "eighteen boots; make check-hard"]
fn eight_pairs_of_boots_by_grub_have_a_verdict() {
    eight_pairs_have_a_verdict("--reboot-by grub");
}
