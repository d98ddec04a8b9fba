//! Tells the tests where the files of this repository are.

fn main() {
    println!("cargo:rustc-env=WORKSPACE={}", file_lists::workspace().display());
}
