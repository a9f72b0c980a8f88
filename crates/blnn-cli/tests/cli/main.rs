//! The built `blnn` command, end to end.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[cfg_attr(not(unix), expect(dead_code, reason = "most tests need signals"))]
mod common;
mod doctor;

#[cfg(unix)]
mod bad_input;
#[cfg(target_os = "linux")]
mod bench;
#[cfg(unix)]
mod docs;
#[cfg(unix)]
mod embed;
mod eval;
mod help;
#[cfg(unix)]
mod own_graph;
#[cfg(target_os = "linux")]
mod plan;
mod report;
#[cfg(unix)]
mod reproduce;
mod shell;
#[cfg(unix)]
mod train;
