//! `preload`: a library in each treated process, before all others (`LD_PRELOAD`).

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Kind, Launch, Parameter, Probe, Treatment, TreatmentError, TreatmentKind, only_word};
use trust::{allowed, user_file};
use weigh_model::evidence::Evidence;
use weigh_model::label::Parameters;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::preloaded::Preloaded;

pub static KIND: TreatmentKind = TreatmentKind::of(
    Kind {
        name: "preload",
        summary: "a library, loaded into the workload before all others",
        parameters: &[Parameter {
            form: "LIB",
            help: "path of the library, as in preload:/usr/lib/libjemalloc.so.2",
        }],
        probe: || Probe::Available,
    },
    build,
);

const MOST_BYTES: u64 = 256 << 20;
/// Part of an ELF header (elf(5)) that distinguishes 32 from 64 bits and gives the byte order.
///
/// `TYPE` and `MACHINE` are the parts with the kind and the machine.
const IDENTITY: std::ops::Range<usize> = 0..6;
const TYPE: std::ops::Range<usize> = 16..18;
const MACHINE: std::ops::Range<usize> = 18..20;
/// `ET_DYN`.
const SHARED: u16 = 3;

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let word = only_word(parameters)
        .ok_or("`preload` takes the path of one library: preload:/usr/lib/libjemalloc.so.2")?;
    let say = |error: std::io::Error| format!("preload:{word}: {error}");
    let library = allowed::executable(Path::new(word)).map_err(say)?;
    let content = user_file::read(&library, MOST_BYTES).map_err(say)?;
    let is_separator = |c: char| c == ':' || c.is_whitespace();
    if library.to_str().is_none_or(|path| path.contains(is_separator)) {
        return Err(format!(
            "preload:{word}: the loader separates libraries by blanks and colons, so the path {} \
             cannot contain any",
            library.display()
        ));
    }
    let own = fs::read("/proc/self/exe").map_err(say)?;
    if !is_library(&content, &own) {
        return Err(format!("preload:{word}: not a shared library for this architecture"));
    }
    let everywhere = fs::read_to_string("/etc/ld.so.preload").unwrap_or_default();
    let inherited = std::env::var("LD_PRELOAD").unwrap_or_default();
    let mut loaded = everywhere.split(is_separator).chain(inherited.split(is_separator));
    if loaded.any(|other| fs::canonicalize(other).is_ok_and(|other| other == library)) {
        return Err(format!(
            "preload:{word}: every process already preloads it (LD_PRELOAD or /etc/ld.so.preload), \
             the baseline too: remove it there"
        ));
    }
    Ok(Box::new(Preloading { library, content }))
}

/// Returns true if `content` is a library for the processes that run `program`.
fn is_library(content: &[u8], program: &[u8]) -> bool {
    let same = |range: std::ops::Range<usize>| {
        content.get(range.clone()).is_some_and(|bytes| program.get(range) == Some(bytes))
    };
    let kind = content.get(TYPE).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    same(IDENTITY) && same(MACHINE) && kind == Some(SHARED)
}

struct Preloading {
    library: PathBuf,
    content: Vec<u8>,
}

impl Preloading {
    fn hold(&self, is_so: bool, is_wanted: bool, launch: &Launch) -> Result<(), TreatmentError> {
        if is_so == is_wanted && launch.is_treated == is_wanted {
            return Ok(());
        }
        let (was, should) = match is_so {
            true => ("was", "should not have been"),
            false => ("was not", "should have been"),
        };
        Err(TreatmentError::NotInForce(format!(
            "{} {was} loaded into the {} process, but {should}",
            self.library.display(),
            launch.whose()
        )))
    }
}

impl Treatment for Preloading {
    fn can_interleave(&self) -> bool {
        true
    }

    fn setup(&self, is_treated: bool) -> Setup {
        Setup::default().with(Preloaded { library: is_treated.then(|| self.library.clone()) })
    }

    /// Checks the libraries that the loader had to load, and the libraries that it did load.
    ///
    /// A program may end before the second can be seen.
    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        let wanted = launch.setup.get::<Preloaded>().and_then(|step| step.library.as_deref());
        let is_wanted = wanted == Some(&*self.library);
        for told in launch.seen(Preloaded::SEEN_TOLD)? {
            let problem = match told {
                Preloaded::NO_LOADER => "is statically linked",
                Preloaded::SECURE => "has more rights than the user who executes it (set-user-ID)",
                _ => {
                    let is_told = told.split(':').any(|file| Path::new(file) == self.library);
                    self.hold(is_told, is_wanted, launch)?;
                    continue;
                }
            };
            if launch.is_treated {
                return Err(TreatmentError::NotInForce(format!(
                    "a program that {problem} cannot preload a library: {}",
                    launch.launched.executed.first().map_or("", String::as_str)
                )));
            }
        }
        let members = launch.treated_members().flat_map(|it| [&it.before.seen, &it.after.seen]);
        let all = std::iter::once(&launch.launched.seen).chain(members);
        for mapped in all.filter_map(|seen| seen.get(Preloaded::SEEN_MAPPED)) {
            let is_mapped = mapped.lines().any(|file| Path::new(file) == self.library);
            self.hold(is_mapped, is_wanted, launch)?;
        }
        Ok(Evidence::default())
    }

    fn content(&self) -> Vec<u8> {
        self.content.clone()
    }

    fn facts(&self) -> Vec<String> {
        let library = self.library.display();
        vec![format!(
            "{library} is loaded into the processes of this arm before all other libraries."
        )]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use weigh_workload::launcher::Launched;

    #[test]
    fn a_process_without_the_library_is_no_evidence() {
        let library = PathBuf::from("/lib/own.so");
        let mut treatment = Preloading { library: library.clone(), content: Vec::new() };
        let mut is_believed = |is_treated, own: bool, told: &str, mapped: Option<&str>| {
            let setup = Setup::default().with(Preloaded { library: own.then(|| library.clone()) });
            let told = (Preloaded::SEEN_TOLD.to_owned(), told.to_owned());
            let mapped =
                mapped.map(|mapped| (Preloaded::SEEN_MAPPED.to_owned(), mapped.to_owned()));
            let seen = [told].into_iter().chain(mapped).collect();
            let launched = Launched { seen, ..Launched::default() };
            treatment.verify_sample(&Launch::of_worker(is_treated, &setup, &launched)).is_ok()
        };
        let own = "/lib/own.so:/lib/other.so";
        let with = Some("/bin/prog\n/lib/ld.so\n/lib/own.so");
        let without = Some("/bin/prog\n/lib/ld.so\n/lib/own.so (deleted)");
        assert!(is_believed(true, true, own, with));
        assert!(is_believed(true, true, own, None), "it ended soon");
        assert!(!is_believed(true, true, own, without), "the loader would not");
        assert!(!is_believed(true, true, "", None));
        assert!(!is_believed(true, true, Preloaded::NO_LOADER, None));
        assert!(!is_believed(true, true, Preloaded::SECURE, None));
        assert!(!is_believed(true, false, "", without), "set up as another");
        assert!(is_believed(false, false, "", without) && is_believed(false, false, "", None));
        assert!(is_believed(false, false, Preloaded::NO_LOADER, None));
        assert!(!is_believed(false, false, "", with) && !is_believed(false, false, own, None));
    }

    #[test]
    fn what_is_no_library_is_refused() {
        let refused = |label: &str| parse(label).err().unwrap();
        assert!(refused("preload").contains("the path of one library"));
        assert!(refused("preload:/absent.so").contains("No such file"));
        assert!(
            refused("preload:/etc/passwd").contains("not a shared library for this architecture")
        );
        assert!(refused("preload:/etc").contains("it is a directory"));
    }
}
