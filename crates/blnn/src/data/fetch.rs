//! Downloading one file, so that it is whole or absent.
//!
//! Bytes go to `<file>.part` beside the target. A download that was cut short leaves that file,
//! and the next one asks the server for the rest (HTTP `Range`); a server that cannot continue
//! is asked for the whole file. Only a file that passes its check takes the target's name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use ureq::http::Response;
use ureq::{Agent, Body};

use crate::error::{Error, ErrorKind, Result};
use crate::graph::hex;

/// How far a download is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes on this machine, those of an earlier attempt included.
    pub received: u64,
    /// Bytes in all, if the server said.
    pub total: Option<u64>,
}

/// A download to be made.
pub(crate) struct Download<'a> {
    pub(crate) url: &'a str,
    pub(crate) target: &'a Path,
    pub(crate) connect_timeout: Duration,
    /// How long the server may be silent.
    pub(crate) stall_timeout: Duration,
    /// Decides whether what arrived is the right file.
    pub(crate) verify: &'a dyn Fn(&Path) -> Result<()>,
}

impl Download<'_> {
    /// Makes the download.
    pub(crate) fn run(&self, on_progress: &mut dyn FnMut(Progress)) -> Result<()> {
        let part = self.part_path();
        let mut file = self.open_part(&part)?;
        self.receive(&mut file, &part, on_progress)?;
        file.sync_all().map_err(|e| Error::io("write", &part, e))?;
        if let Err(error) = (self.verify)(&part) {
            drop(file);
            let _ = fs::remove_file(&part);
            let message = format!("{} sent another file than the published one", self.url);
            return Err(Error::new(
                ErrorKind::Dataset,
                format!("{message}: {error}. It was removed; try again, or from another address"),
            )
            .with_source(error));
        }
        // Windows does not rename a file that is open.
        drop(file);
        fs::rename(&part, self.target).map_err(|e| Error::io("write", self.target, e))
    }

    fn part_path(&self) -> PathBuf {
        let mut name = self.target.as_os_str().to_owned();
        name.push(".part");
        name.into()
    }

    /// Opens what an earlier attempt left, or a new file, and keeps other processes off it.
    fn open_part(&self, part: &Path) -> Result<File> {
        let folder = self.target.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(|e| Error::io("make the folder", folder, e))?;
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.open(part).map_err(|e| Error::io("write", part, e))?;
        match file.try_lock() {
            Err(fs::TryLockError::WouldBlock) => {
                let message = "another process is downloading this file; wait for it";
                Err(Error::new(ErrorKind::Dataset, message).at(part.display()))
            }
            // A file system without locks is no reason to refuse.
            _ => Ok(file),
        }
    }

    fn receive(
        &self,
        file: &mut File,
        part: &Path,
        on_progress: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        let present = file.metadata().map_err(|e| Error::io("read", part, e))?.len();
        let (response, start) = self.request(present)?;
        let unwritable = |e| Error::io("write", part, e);
        file.set_len(start).map_err(unwritable)?;
        file.seek(SeekFrom::Start(start)).map_err(unwritable)?;
        let total = response.body().content_length().map(|rest| start + rest);
        let mut progress = Progress { received: start, total };
        let mut body = response.into_body().into_reader();
        let mut block = vec![0; 1 << 16];
        loop {
            on_progress(progress);
            let count = body.read(&mut block).map_err(|e| self.broken(progress, &e))?;
            if count == 0 {
                break;
            }
            file.write_all(&block[..count]).map_err(unwritable)?;
            progress.received += count as u64;
        }
        if total.is_some_and(|total| total != progress.received) {
            return Err(self.broken(progress, &io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(())
    }

    /// Asks for the file from byte `present` on, and says from which byte it comes: from the first
    /// if the server ignores the range or has no such bytes.
    fn request(&self, present: u64) -> Result<(Response<Body>, u64)> {
        let agent = self.agent();
        if present > 0 {
            let range = format!("bytes={present}-");
            let response = self.answer(agent.get(self.url).header("Range", range).call())?;
            match response.status().as_u16() {
                206 if continues_at(&response, present) => return Ok((response, present)),
                200 => return Ok((response, 0)),
                206 | 416 => {}
                _ => return Err(self.refused(&response)),
            }
        }
        let response = self.answer(agent.get(self.url).call())?;
        if response.status() == 200 { Ok((response, 0)) } else { Err(self.refused(&response)) }
    }

    fn agent(&self) -> Agent {
        Agent::config_builder()
            .http_status_as_error(false)
            .proxy(self.proxy())
            .user_agent(concat!("blnn/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(self.connect_timeout))
            .timeout_connect(Some(self.connect_timeout))
            .timeout_recv_response(Some(self.stall_timeout))
            .timeout_per_read(Some(self.stall_timeout))
            .build()
            .into()
    }

    /// The proxy that the environment names, unless the server is on this machine.
    fn proxy(&self) -> Option<ureq::Proxy> {
        let local = ["http://127.0.0.1", "http://localhost", "http://[::1]"];
        let is_local = local.iter().any(|start| self.url.starts_with(start));
        if is_local { None } else { ureq::Proxy::try_from_env() }
    }

    fn answer(&self, call: Result<Response<Body>, ureq::Error>) -> Result<Response<Body>> {
        call.map_err(|e| {
            let message = format!("no answer from {}: {e}; check the network", self.url);
            Error::new(ErrorKind::Dataset, message).with_source(e)
        })
    }

    fn refused(&self, response: &Response<Body>) -> Error {
        let message = format!("{} answered {}", self.url, response.status());
        Error::new(ErrorKind::Dataset, message)
    }

    fn broken(&self, progress: Progress, cause: &io::Error) -> Error {
        let Progress { received, total } = progress;
        let total = total.map_or("unknown".into(), |total| total.to_string());
        let what = if is_timeout(cause) {
            format!("was silent for {} s", self.stall_timeout.as_secs_f64())
        } else if cause.kind() == io::ErrorKind::UnexpectedEof {
            "broke off".to_owned()
        } else {
            format!("failed ({cause})")
        };
        let message = format!(
            "{} {what} after {received} of {total} bytes; run the command again to continue",
            self.url
        );
        Error::new(ErrorKind::Dataset, message)
    }
}

/// Whether a read ended because the server was silent for too long.
fn is_timeout(cause: &io::Error) -> bool {
    let inner = cause.get_ref().and_then(|e| e.downcast_ref());
    cause.kind() == io::ErrorKind::TimedOut || matches!(inner, Some(ureq::Error::Timeout(_)))
}

/// Whether a partial answer starts at byte `start`.
fn continues_at(response: &Response<Body>, start: u64) -> bool {
    let range = response.headers().get("Content-Range").and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.trim().starts_with(&format!("bytes {start}-")))
}

/// The hex SHA-256 of a file.
///
/// # Errors
/// If the file cannot be read.
///
/// # Examples
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("empty");
/// std::fs::write(&path, "")?;
/// assert!(blnn::data::fetch::sha256_of(&path)?.starts_with("e3b0c44298fc1c14"));
/// # Ok(())
/// # }
/// ```
pub fn sha256_of(path: &Path) -> Result<String> {
    let unreadable = |e| Error::io("read", path, e);
    let mut file = File::open(path).map_err(unreadable)?;
    let mut digest = Sha256::new();
    let mut block = vec![0; 1 << 16];
    loop {
        let count = file.read(&mut block).map_err(unreadable)?;
        if count == 0 {
            return Ok(hex(&digest.finalize()));
        }
        digest.update(&block[..count]);
    }
}

#[cfg(test)]
mod tests;
