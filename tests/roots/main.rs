//! Other root file systems, file systems around samples, guests and boots.

#[path = "../support/mod.rs"]
mod support;

mod boot;
mod fixture;
mod rootfs;
mod rootfs_kill;
mod rootfs_same;
mod vm;
