//! A home with a database of stored experiments.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::Home;

/// Returns the directory of stored databases. Beside each database are the experiments that the
/// same weigh exported.
pub fn fixtures() -> PathBuf {
    Path::new(env!("WORKSPACE")).join("tests/fixtures/store")
}

/// The directory's database, as if it had been used before.
pub fn stored() -> Home {
    let home = Home::new();
    let packed = fs::File::open(fixtures().join("experiments.db.gz")).unwrap();
    let mut database = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut database).unwrap();
    fs::create_dir_all(home.database().parent().unwrap()).unwrap();
    fs::write(home.database(), database).unwrap();
    home
}
