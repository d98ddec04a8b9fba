//! One file per format; all of them show a [`summary::Summary`].

pub mod summary;
