//! `thp`: which mappings get transparent huge pages, for each treated sample.

use std::path::Path;

use crate::switched::{Switch, Switched};
use crate::{Kind, Parameter, Probe, Treatment, TreatmentKind, only_word, writable};
use weigh_host::machine::fix::{HUGE_PAGES, HUGE_PAGES_WORDS, Setting};
use weigh_model::label::Parameters;

pub static KIND: TreatmentKind = TreatmentKind::of(
    Kind {
        name: "thp",
        summary: "which memory gets transparent huge pages",
        parameters: &[
            Parameter { form: "always", help: "all mappings that a huge page fits into" },
            Parameter { form: "madvise", help: "mappings that request them (madvise)" },
            Parameter { form: "never", help: "no mappings" },
        ],
        probe,
    },
    build,
);

const OCCUPIED: &str = "the setting of transparent huge pages";

fn probe() -> Probe {
    match Path::new(HUGE_PAGES).exists() {
        true => writable(HUGE_PAGES),
        false => Probe::Broken("this kernel lacks transparent huge pages".into()),
    }
}

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let wanted = only_word(parameters)
        .ok_or_else(|| format!("`thp` takes one of {}: thp:never", HUGE_PAGES_WORDS.join(", ")))?;
    let (file, was) = (HUGE_PAGES.into(), String::new());
    let setting = Setting { file, was, wanted: wanted.to_owned() };
    let switch = Switch { name: "transparent_hugepage/enabled".into(), setting };
    Ok(Box::new(Switched::new(OCCUPIED, vec![switch])))
}

#[cfg(test)]
mod tests {
    use crate::parse;

    #[test]
    fn it_is_one_of_three_words() {
        assert!(parse("thp:never").is_ok());
        for label in ["thp", "thp:never,always"] {
            assert!(parse(label).err().unwrap().contains("takes one of always, madvise, never"));
        }
        assert!(parse("thp:sometimes").err().unwrap().contains("does not take `sometimes`"));
    }
}
