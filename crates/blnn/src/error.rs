//! [`Error`]: one opaque error type whose message names the input, the place and the remedy.

use std::fmt;
use std::path::Path;

/// Anything that can go wrong in this crate. Match on [`Error::kind`].
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What sort of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting is unknown or out of range.
    Config,
    /// A data set is unknown, missing, could not be fetched, or fails its checksum.
    Dataset,
    /// The bytes of a file are not what its format demands.
    Parse,
    /// A graph, matrix or label vector breaks an invariant or does not fit another one.
    Shape,
    /// A checkpoint belongs to another graph, configuration or version.
    Checkpoint,
    /// Training produced a loss that is not finite.
    Diverged,
    /// The operating system refused to read or write.
    Io,
    /// The machine has less memory than is needed.
    Memory,
}

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of the given kind with a message that names the input and the remedy.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), source: None }))
    }

    /// Adds the underlying cause.
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// An error of the operating system while doing `action` (such as "read") to `path`.
    pub fn io(action: &str, path: &Path, source: std::io::Error) -> Self {
        Self::new(ErrorKind::Io, format!("cannot {action} {}: {source}", path.display()))
            .with_source(source)
    }

    /// Puts `place` (a file, a flag, a config key) in front of the message.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.0.message = format!("{place}: {}", self.0.message);
        self
    }

    /// What sort of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.kind, self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|e| &**e as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_the_place() {
        let e = Error::new(ErrorKind::Config, "must be > 0, got 0").at("temperature").at("a.toml");
        assert_eq!(e.to_string(), "a.toml: temperature: must be > 0, got 0");
        assert_eq!(e.kind(), ErrorKind::Config);
    }
}
