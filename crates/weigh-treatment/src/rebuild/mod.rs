//! The workloads built again from the sources that are embedded, by another compiler or with other flags, and
//! linked in several orders of their objects: where a link puts a loop may matter more than a flag does
//! (Mytkowicz et al., "Producing Wrong Data Without Doing Anything Obviously Wrong!", ASPLOS 2009).

pub mod compiler;
mod jobs;
mod recipe;

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};

use super::TreatmentError;
use compiler::Compiler;
use jobs::Jobs;
use recipe::{Recipe, mark_source, output};
use weigh_workload::executable::{Executable, FILE_NAME};
use weigh_workload::sources::SOURCES;

/// How many there are to draw from.
pub const LINKS: usize = 16;

/// Time limit of one command: a link that optimises the whole program takes seconds.
const LIMIT: Duration = Duration::from_secs(300);

/// The workloads, linked in one order.
pub struct Link {
    pub executable: Executable,
    pub sha256: String,
    /// Name that the executable gives itself in every line that it prints.
    pub mark: String,
}

/// Compiles and links in a directory that is there. The first order is that of the Makefile, the others are
/// drawn from the seed.
pub fn build(
    compiler: &Compiler,
    directory: &Path,
    name: &str,
    seed: u64,
    interrupted: &AtomicBool,
) -> Result<Vec<Link>, TreatmentError> {
    let unavailable = |error: io::Error| {
        let problem = format!("cannot build the workloads in {}: {error}", directory.display());
        TreatmentError::Unavailable(problem)
    };
    let sources = directory.join("sources");
    let marks: Vec<String> = (0..LINKS).map(|link| format!("{name}/{link}")).collect();
    unpack(&sources, &marks).map_err(unavailable)?;
    let recipe = Recipe::of(compiler);
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let compiles = recipe.compiles(marks.len());
    let links: Vec<_> = (0..marks.len()).flat_map(|link| recipe.links(link, &mut chance)).collect();
    for file in compiles.iter().chain(&links).filter_map(|command| output(command)) {
        let above = Path::new(file).parent().unwrap_or(Path::new(""));
        fs::create_dir_all(sources.join(above)).map_err(unavailable)?;
    }
    let jobs = Jobs { directory: &sources, interrupted, limit: LIMIT };
    jobs.run_all(&compiles)?;
    jobs.run_all(&links)?;
    for finished in ["sources", "objects"] {
        fs::remove_dir_all(directory.join(finished)).map_err(unavailable)?;
    }
    let link = |(link, mark): (usize, String)| {
        let file = directory.join(link.to_string()).join(FILE_NAME);
        let sha256 = format!("{:x}", Sha256::digest(fs::read(&file).map_err(unavailable)?));
        let executable = Executable::built(file).map_err(TreatmentError::Unavailable)?;
        Ok(Link { executable, sha256, mark })
    };
    marks.into_iter().enumerate().map(link).collect()
}

/// Writes the sources, and beside them one for each link that says which it is.
fn unpack(directory: &Path, marks: &[String]) -> io::Result<()> {
    let marked = marks.iter().enumerate().map(|(link, mark)| {
        let text = "extern const char weigh_build[];\nconst char weigh_build[]";
        (mark_source(link), format!("{text} = \"{mark}\";\n"))
    });
    let embedded = SOURCES.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    for (path, text) in embedded.chain(marked) {
        let file = directory.join(path);
        file.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(file, text)?;
    }
    Ok(())
}

/// SHA-256 of all that is embedded.
pub fn digest_of_sources() -> String {
    let mut hash = Sha256::new();
    for (path, text) in SOURCES {
        hash.update(format!("{path} {}\n{text}", text.len()));
    }
    format!("{:x}", hash.finalize())
}
