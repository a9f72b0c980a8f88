//! The few options of these commands, taken one by one from the command line.

use anyhow::{Context, Result, bail};

/// The words after the command; each option takes its own out.
pub(crate) struct Args(Vec<String>);

impl Args {
    pub(crate) fn new(words: Vec<String>) -> Self {
        Self(words)
    }

    /// Whether `name` was given.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|word| word != name);
        self.0.len() < before
    }

    /// The value of `name`, written as `name value` or `name=value`.
    pub(crate) fn value(&mut self, name: &str) -> Result<Option<String>> {
        let is_option = |word: &String| {
            word.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        let Some(at) = self.0.iter().position(is_option) else {
            return Ok(None);
        };
        let word = self.0.remove(at);
        if let Some((_, value)) = word.split_once('=') {
            return Ok(Some(value.to_owned()));
        }
        if at == self.0.len() {
            bail!("{name} needs a value");
        }
        Ok(Some(self.0.remove(at)))
    }

    /// A count of at least one.
    pub(crate) fn count(&mut self, name: &str, default: usize) -> Result<usize> {
        let Some(text) = self.value(name)? else {
            return Ok(default);
        };
        let count = text.parse().with_context(|| format!("{name}: `{text}` is not a number"))?;
        if count == 0 {
            bail!("{name} must be at least 1");
        }
        Ok(count)
    }

    /// The words that are no options, when all options were taken.
    pub(crate) fn words(self) -> Result<Vec<String>> {
        match self.0.iter().find(|word| word.starts_with('-')) {
            None => Ok(self.0),
            Some(word) => bail!("unknown option `{word}`; `cargo xtask help` lists them all"),
        }
    }

    /// Refuses words that no option took.
    pub(crate) fn finish(self) -> Result<()> {
        match self.0.first() {
            None => Ok(()),
            Some(word) => bail!("unknown option `{word}`; `cargo xtask help` lists them all"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Args {
        Args::new(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn options_are_taken_in_any_order() {
        let mut args = args("--format=json --epochs 6 --check");
        assert!(args.flag("--check"));
        assert_eq!(args.count("--epochs", 10).unwrap(), 6);
        assert_eq!(args.value("--format").unwrap().as_deref(), Some("json"));
        assert_eq!(args.count("--rounds", 2).unwrap(), 2);
        args.finish().unwrap();
    }

    #[test]
    fn mistakes_are_refused() {
        assert!(args("--epochs").value("--epochs").is_err());
        assert!(args("--epochs 0").count("--epochs", 1).is_err());
        assert!(args("--epochs many").count("--epochs", 1).is_err());
        assert!(args("--epoch 3").finish().is_err());
        assert!(args("npz --second 3").words().is_err());
        assert_eq!(args("npz npy").words().unwrap(), ["npz", "npy"]);
    }
}
