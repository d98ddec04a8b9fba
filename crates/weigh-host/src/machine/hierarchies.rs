//! Which hierarchies of control groups there are, which group of each this process is in, and where a private
//! group can be made: in version 2 where its controllers are passed on, else in version 1.

use std::fs;
use std::path::{Path, PathBuf};

/// The hierarchies of the machine below a root.
#[derive(Debug, Default)]
pub struct Hierarchies {
    all: Vec<Hierarchy>,
}

#[derive(Debug)]
pub struct Hierarchy {
    /// Controllers of version 1; empty for version 2.
    controllers: Vec<String>,
    /// Below the root.
    mount_point: PathBuf,
    /// Where we are in it, from the mount point.
    own: PathBuf,
}

/// Where a group for a controller can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupPlace {
    /// The directory in which it is made.
    pub parent: PathBuf,
    pub is_version_2: bool,
}

impl Hierarchies {
    /// Reads them from `/proc/self` below a root.
    pub fn read(root: &Path) -> Hierarchies {
        let text = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
        let (mounts, own) = (text("proc/self/mountinfo"), text("proc/self/cgroup"));
        let of_line = |line| hierarchy(root, line, &own);
        Hierarchies { all: mounts.lines().filter_map(of_line).collect() }
    }

    /// Returns true if no hierarchy was found.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The directory of the group that this process is in, of each hierarchy.
    pub fn own_groups(&self) -> impl Iterator<Item = PathBuf> {
        self.all.iter().map(|hierarchy| hierarchy.mount_point.join(&hierarchy.own))
    }

    /// The groups that contain this process in a hierarchy which may have this controller, from its own
    /// upwards.
    pub fn groups_around(&self, controller: &str) -> Vec<PathBuf> {
        let may_have = |hierarchy: &&Hierarchy| {
            let Hierarchy { controllers, .. } = hierarchy;
            controllers.is_empty() || controllers.iter().any(|its| its == controller)
        };
        self.all.iter().filter(may_have).flat_map(Hierarchy::groups).collect()
    }

    /// Where a group can be made that has this controller.
    pub fn place_for(&self, controller: &str) -> Result<GroupPlace, String> {
        let version_2 = self.all.iter().find(|hierarchy| hierarchy.controllers.is_empty());
        if let Some(parent) = version_2.and_then(|found| found.passes_on(controller)) {
            return Ok(GroupPlace { parent, is_version_2: true });
        }
        let has_it = |hierarchy: &&Hierarchy| hierarchy.controllers.iter().any(|c| c == controller);
        if let Some(Hierarchy { mount_point, own, .. }) = self.all.iter().find(has_it) {
            return Ok(GroupPlace { parent: mount_point.join(own), is_version_2: false });
        }
        let shown = |hierarchy: &Hierarchy| {
            let file = hierarchy.mount_point.join("cgroup.subtree_control");
            format!("; `echo +{controller} > {}` enables the controller", file.display())
        };
        let available =
            version_2.filter(|found| found.has(&found.mount_point, "controllers", controller));
        Err(format!(
            "cannot create a control group with the controller `{controller}` here{}",
            available.map(shown).unwrap_or_default()
        ))
    }
}

impl Hierarchy {
    /// The nearest group from ours upwards whose children have the controller. One that has processes, as
    /// ours, mostly has no such children.
    fn passes_on(&self, controller: &str) -> Option<PathBuf> {
        self.groups().find(|group| self.has(group, "subtree_control", controller))
    }

    /// Ours, and those around it.
    fn groups(&self) -> impl Iterator<Item = PathBuf> {
        self.own.ancestors().map(|path| self.mount_point.join(path))
    }

    fn has(&self, group: &Path, list: &str, controller: &str) -> bool {
        let text = fs::read_to_string(group.join(format!("cgroup.{list}"))).unwrap_or_default();
        text.split_whitespace().any(|word| word == controller)
    }
}

/// Reads the hierarchy of control groups that a line of `mountinfo` mounts: proc_pid_mountinfo(5).
fn hierarchy(root: &Path, line: &str, own: &str) -> Option<Hierarchy> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut fields = mount.split(' ').skip(3);
    let (top, mount_point) = (fields.next()?, fields.next()?);
    let mut fields = file_system.split(' ');
    let (kind, options) = (fields.next()?, fields.nth(1)?);
    let controllers: Vec<String> = match kind {
        "cgroup2" => Vec::new(),
        "cgroup" => options.split(',').filter(|word| *word != "rw").map(String::from).collect(),
        _ => return None,
    };
    let mut lines = own.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        Some((parts.next()?, parts.next()?))
    });
    let is_it = |names: &str| match controllers.is_empty() {
        true => names.is_empty(),
        false => names.split(',').any(|name| controllers.iter().any(|c| c == name)),
    };
    let path = lines.find_map(|(names, path)| is_it(names).then_some(path))?;
    // In a container, what is mounted may begin further down than the paths do.
    let own = Path::new(path).strip_prefix(top).unwrap_or(Path::new(""));
    let own = own.strip_prefix("/").unwrap_or(own).to_owned();
    let mount_point = root.join(mount_point.trim_start_matches('/'));
    Some(Hierarchy { controllers, mount_point, own })
}

/// Machines of files, for tests.
#[cfg(any(test, feature = "example"))]
pub mod example {
    use super::*;

    pub fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    pub const SYSTEMD: [(&str, &str); 6] = [
        (
            "proc/self/mountinfo",
            "31 23 0:28 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
        ),
        ("proc/self/cgroup", "0::/user.slice/user-7.slice/session-1.scope\n"),
        ("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n"),
        ("sys/fs/cgroup/cgroup.subtree_control", "cpu memory pids\n"),
        ("sys/fs/cgroup/user.slice/cgroup.subtree_control", "cpu memory\n"),
        ("sys/fs/cgroup/user.slice/user-7.slice/cgroup.subtree_control", "memory\n"),
    ];
}

#[cfg(test)]
mod tests {
    use super::example::{SYSTEMD, machine};
    use super::*;

    #[test]
    fn in_version_2_it_is_the_nearest_group_that_passes_the_controller_on() {
        let root = machine(&SYSTEMD);
        let found = Hierarchies::read(root.path());
        let place = |controller| found.place_for(controller);
        let below = |path: &str| root.path().join("sys/fs/cgroup").join(path);
        let group = |path| Ok(GroupPlace { parent: below(path), is_version_2: true });
        assert_eq!(place("memory"), group("user.slice/user-7.slice"));
        assert_eq!(place("cpu"), group("user.slice"));
        assert_eq!(place("pids"), group(""));
        let said = place("cpuset").unwrap_err();
        assert!(
            said.contains("echo +cpuset > ") && said.contains("enables the controller"),
            "{said}"
        );
        let said = place("rdma").unwrap_err();
        assert!(said.contains("`rdma`") && !said.contains("echo"), "{said}");
    }

    #[test]
    fn where_version_2_has_no_controllers_it_is_ours_of_version_1() {
        let root = machine(&[
            (
                "proc/self/mountinfo",
                "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
                 35 31 0:32 /docker /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                 41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
                 42 31 0:39 / /proc rw - proc proc rw\n",
            ),
            ("proc/self/cgroup", "4:memory:/docker/ab\n1:cpu,cpuacct:/\n0::/\n"),
            ("sys/fs/cgroup/unified/cgroup.subtree_control", "\n"),
        ]);
        let found = Hierarchies::read(root.path());
        let group = |path: &str| {
            let parent = root.path().join("sys/fs/cgroup").join(path);
            Ok(GroupPlace { parent, is_version_2: false })
        };
        assert_eq!(found.place_for("cpu"), group("cpu/"));
        assert_eq!(found.place_for("memory"), group("memory/ab"));
        assert!(found.place_for("pids").is_err());
        assert!(Hierarchies::read(&root.path().join("absent")).is_empty());
    }
}
