//! [`Config`]: settings as given, in layers, each value with the place it came from.
//!
//! Layers, each overriding those before it: the built-in default, the preset of the method and
//! data set, a config file, single assignments, dedicated flags. [`Config::resolve`] is the only
//! way to a [`Plan`], and the only place that checks a range.
//!
//! **Warm-up follows the number of epochs.** Where a layer gives `epochs` and `warmup_epochs`
//! together (every preset does) and a later layer changes `epochs` alone, the warm-up keeps its
//! share: a preset of 10,000 epochs with a warm-up of 1,000, cut to 500 epochs, warms up for 50.
//! A warm-up given on its own is taken as it is.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use toml::Value;
use toml::de::DeTable;

use crate::error::{Error, ErrorKind, Result};
use crate::nearest::nearest;
use crate::plan::{Method, Objective, Plan, Precision, Statistics};
use crate::preset;

/// Every key of a config file, in the order they are written.
pub(crate) const KEYS: [&str; 17] = [
    "method",
    "objective",
    "temperature",
    "hidden_width",
    "embedding_width",
    "predictor_width",
    "edge_drop",
    "feature_drop",
    "learning_rate",
    "weight_decay",
    "epochs",
    "warmup_epochs",
    "ema_start",
    "statistics",
    "seed",
    "checkpoint_every",
    "precision",
];

/// Wider layers than this are a slip of the keyboard: one weight matrix would take 16 GB.
const MAX_WIDTH: usize = 65_536;
/// Far beyond any training, and small enough that schedules compute with it exactly.
const MAX_EPOCHS: usize = 1_000_000_000;

/// The flag of single assignments, which begins their place in messages.
const ASSIGNED: &str = "--set";

/// Settings as given, layer upon layer. Nothing is checked but the keys until
/// [`resolve`](Config::resolve).
///
/// ```
/// let mut config = blnn::Config::new();
/// config.assign("temperature=0.5")?;
/// config.flag("epochs", 500_i64);
/// let plan = config.resolve("photo")?;
/// assert_eq!(plan.epochs(), 500);
/// assert!(plan.to_toml().contains("warmup_epochs = 50"));
///
/// let error = config.assign("temprature=0.5").unwrap_err();
/// assert!(error.to_string().contains("did you mean `temperature`?"));
/// # Ok::<(), blnn::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Config {
    layers: Vec<Layer>,
    /// The file that was given first: the place of a key that none of the layers has.
    first_file: Option<String>,
}

type Layer = BTreeMap<&'static str, Given>;

/// One value and the place it came from, such as `a.toml:3` or `--epochs`.
#[derive(Clone, Debug)]
struct Given {
    value: Value,
    origin: String,
}

impl Config {
    /// No settings: everything is left to preset and default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a layer from a TOML file.
    ///
    /// # Errors
    /// If the file cannot be read, is not TOML or holds an unknown key.
    pub fn file(&mut self, path: &Path) -> Result<()> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::io("read", path, e))?;
        self.text(&text, &path.display().to_string())
    }

    /// Adds a layer from the text of a TOML file; `origin` names it in messages.
    ///
    /// # Errors
    /// If the text is not TOML or holds an unknown key.
    pub fn text(&mut self, text: &str, origin: &str) -> Result<()> {
        self.layers.push(parse(text, origin)?);
        self.first_file.get_or_insert_with(|| origin.to_owned());
        Ok(())
    }

    /// Adds a layer from one assignment `key=value`. The value is read as TOML, or else as text,
    /// so that quotes around a word are optional.
    ///
    /// # Errors
    /// If there is no `=` or the key is unknown.
    pub fn assign(&mut self, assignment: &str) -> Result<()> {
        let origin = format!("{ASSIGNED} {assignment}");
        let Some((key, value)) = assignment.split_once('=') else {
            let message = "write it as key=value, such as --set epochs=500";
            return Err(config_error(message).at(origin));
        };
        let key = known_key(key.trim()).map_err(|e| e.at(&origin))?;
        let value = value.trim();
        let value = match format!("v = {value}").parse::<toml::Table>() {
            Ok(mut table) if table.len() == 1 => table.remove("v").unwrap_or(Value::Boolean(false)),
            _ => Value::String(value.to_owned()),
        };
        self.push(key, value, origin);
        Ok(())
    }

    /// Adds a layer from a dedicated flag.
    ///
    /// # Panics
    /// If `key` is none of the config's keys: that is a slip in the calling code, not bad input.
    #[track_caller]
    pub fn flag(&mut self, key: &str, value: impl Into<Setting>) {
        let key = known_key(key).expect("a flag sets a known key");
        self.push(key, value.into().0, format!("--{key}"));
    }

    fn push(&mut self, key: &'static str, value: Value, origin: String) {
        self.layers.push(BTreeMap::from([(key, Given { value, origin })]));
    }

    /// Checks every setting, with the preset of `dataset` (if there is one) beneath what was
    /// given and the built-in default beneath that.
    ///
    /// # Errors
    /// If a value has the wrong type or lies out of range; the message names the key, the value,
    /// the place it was given and what is allowed.
    pub fn resolve(&self, dataset: &str) -> Result<Plan> {
        let mut base = Self::new();
        base.text(preset::DEFAULT, "built-in default")?;
        let method = self.clone().over(base.clone()).method()?;
        if let Some(preset) = preset::find(method, dataset) {
            base.text(preset.text, &format!("preset {}", preset.path))?;
        }
        self.resolve_over(base)
    }

    /// Like [`resolve`](Self::resolve), with a precision that is given nowhere chosen for this
    /// machine ([`Precision::auto`]) instead of the built-in default, which is the same anywhere.
    ///
    /// # Errors
    /// As for [`resolve`](Self::resolve).
    pub fn resolve_on_this_machine(&self, dataset: &str) -> Result<Plan> {
        let mut wish = Self::new();
        wish.push("precision", Value::String("auto".into()), "--precision".into());
        self.clone().over(wish).resolve(dataset)
    }

    /// Checks every setting, with `base` beneath what was given in place of default and preset.
    /// `base` must give all keys; the config of an earlier run does.
    ///
    /// # Errors
    /// As for [`resolve`](Self::resolve), and if a key is given nowhere.
    pub fn resolve_over(&self, base: Self) -> Result<Plan> {
        let all = self.clone().over(base);
        let epochs = all.integer("epochs", 1, MAX_EPOCHS)?;
        let method = all.method()?;
        Ok(Plan {
            method,
            objective: all.objective(method)?,
            temperature: all
                .number("temperature", "0.000001 or more, and finite", |t| t >= 1e-6)?,
            hidden_width: all.integer("hidden_width", 1, MAX_WIDTH)?,
            embedding_width: all.integer("embedding_width", 1, MAX_WIDTH)?,
            predictor_width: all.integer("predictor_width", 1, MAX_WIDTH)?,
            edge_drop: all.rates("edge_drop")?,
            feature_drop: all.rates("feature_drop")?,
            // Smaller ones are zero in the steps' precision, larger ones infinite.
            learning_rate: all
                .double("learning_rate", "from 1e-37 to 3e38", |r| (1e-37..=3e38).contains(&r))?,
            weight_decay: all
                .double("weight_decay", "from 0 to 1", |d| (0.0..=1.0).contains(&d))?,
            epochs,
            warmup_epochs: all.warmup(epochs)?,
            ema_start: all.double("ema_start", "from 0 to 1", |m| (0.0..=1.0).contains(&m))?,
            statistics: all.word("statistics", &Statistics::ALL, Statistics::name)?,
            seed: all.integer("seed", 0, i64::MAX as usize)? as u64,
            checkpoint_every: all.integer("checkpoint_every", 1, MAX_EPOCHS)?,
            precision: all.precision()?,
        })
    }

    /// BGRL has no neighbours, and so no second way to weigh them.
    fn objective(&self, method: Method) -> Result<Objective> {
        let objective = self.word("objective", &Objective::ALL, Objective::name)?;
        if method == Method::Bgrl && objective != Objective::Paper {
            let (_, given) = self.find("objective")?;
            return Err(given.refuse("objective", "\"paper\" for the method bgrl"));
        }
        Ok(objective)
    }

    /// `auto` is settled here, once: a plan, and so every file of a run, names an arithmetic.
    fn precision(&self) -> Result<Precision> {
        let choices = [None].into_iter().chain(Precision::ALL.map(Some)).collect::<Vec<_>>();
        let name = |choice: Option<Precision>| choice.map_or("auto", Precision::name);
        Ok(self.word("precision", &choices, name)?.unwrap_or_else(Precision::auto))
    }

    /// What was [assigned](Self::assign) here and changes nothing in a training by `method`, with its
    /// place. A file may give more than one method needs: several may share it.
    ///
    /// ```
    /// let mut config = blnn::Config::new();
    /// config.assign("temperature=0.5")?;
    /// assert!(config.unused(blnn::Method::Blnn).is_none());
    /// let told = config.unused(blnn::Method::Bgrl).expect("it has no attention");
    /// assert!(told.starts_with("--set temperature=0.5: "));
    /// # Ok::<(), blnn::Error>(())
    /// ```
    pub fn unused(&self, method: Method) -> Option<String> {
        let (_, Given { origin, .. }) = self.find("temperature").ok()?;
        let is_unused = method != Method::Blnn && origin.starts_with(ASSIGNED);
        is_unused
            .then(|| format!("{origin}: changes nothing, only the method blnn has an attention"))
    }

    /// These layers on top of those of `base`.
    fn over(mut self, mut base: Self) -> Self {
        base.layers.append(&mut self.layers);
        base
    }

    /// The topmost value of a key and the layer that holds it.
    fn find(&self, key: &str) -> Result<(usize, &Given)> {
        let mut layers = self.layers.iter().enumerate().rev();
        layers
            .find_map(|(i, layer)| layer.get(key).map(|given| (i, given)))
            .ok_or_else(|| self.missing(key))
    }

    fn missing(&self, key: &str) -> Error {
        let error = config_error(format!("`{key}` is missing; add a line for it"));
        match &self.first_file {
            Some(file) => error.at(file),
            None => error,
        }
    }

    fn method(&self) -> Result<Method> {
        self.word("method", &Method::ALL, Method::name)
    }

    fn warmup(&self, epochs: usize) -> Result<usize> {
        let (layer, given) = self.find("warmup_epochs")?;
        let (epochs_layer, _) = self.find("epochs")?;
        let warmup = self.integer("warmup_epochs", 0, MAX_EPOCHS)?;
        if epochs_layer > layer && self.layers[layer].contains_key("epochs") {
            let together = Self { layers: vec![self.layers[layer].clone()], first_file: None };
            let base = together.integer("epochs", 1, MAX_EPOCHS)?;
            if warmup < base {
                return Ok(warmup * epochs / base);
            }
        }
        if warmup < epochs {
            return Ok(warmup);
        }
        let allowed = format!("below epochs ({epochs})");
        Err(given.refuse("warmup_epochs", &allowed))
    }

    fn integer(&self, key: &str, least: usize, most: usize) -> Result<usize> {
        let (_, given) = self.find(key)?;
        given
            .value
            .as_integer()
            .and_then(|v| usize::try_from(v).ok())
            .filter(|v| (least..=most).contains(v))
            .ok_or_else(|| given.refuse(key, &format!("a whole number from {least} to {most}")))
    }

    fn double(&self, key: &str, allowed: &str, accept: impl Fn(f64) -> bool) -> Result<f64> {
        let (_, given) = self.find(key)?;
        as_number(&given.value)
            .filter(|v| v.is_finite() && accept(*v))
            .ok_or_else(|| given.refuse(key, allowed))
    }

    /// Like [`double`](Self::double), checked after the value lost its extra digits: the smallest
    /// doubles are 0 as `f32`.
    fn number(&self, key: &str, allowed: &str, accept: impl Fn(f32) -> bool) -> Result<f32> {
        let narrow = |v: f64| (v as f32).is_finite() && accept(v as f32);
        Ok(self.double(key, allowed, narrow)? as f32)
    }

    fn rates(&self, key: &str) -> Result<[f32; 2]> {
        let (_, given) = self.find(key)?;
        let refuse =
            || given.refuse(key, "two numbers [view 1, view 2], each at least 0 and below 1");
        let rate = |v: &Value| as_number(v).map(|v| v as f32).filter(|v| (0.0..1.0).contains(v));
        match given.value.as_array().map(Vec::as_slice) {
            Some([first, second]) => {
                Ok([rate(first).ok_or_else(refuse)?, rate(second).ok_or_else(refuse)?])
            }
            _ => Err(refuse()),
        }
    }

    fn word<T: Copy>(&self, key: &str, all: &[T], name: impl Fn(T) -> &'static str) -> Result<T> {
        let (_, given) = self.find(key)?;
        let word = given.value.as_str();
        let found = all.iter().find(|t| Some(name(**t)) == word);
        found.copied().ok_or_else(|| {
            let names: Vec<String> = all.iter().map(|t| format!("\"{}\"", name(*t))).collect();
            given.refuse(key, &names.join(" or "))
        })
    }
}

impl Given {
    fn refuse(&self, key: &str, allowed: &str) -> Error {
        config_error(format!("`{key}` must be {allowed}, got {}", self.value)).at(&self.origin)
    }
}

/// A value for [`Config::flag`].
#[derive(Clone, Debug)]
pub struct Setting(Value);

impl From<i64> for Setting {
    fn from(value: i64) -> Self {
        Self(Value::Integer(value))
    }
}

impl From<u64> for Setting {
    /// A number beyond what TOML can hold is kept as text, to be refused with its own digits.
    fn from(value: u64) -> Self {
        Self(i64::try_from(value).map_or_else(|_| Value::String(value.to_string()), Value::Integer))
    }
}

impl From<&str> for Setting {
    fn from(value: &str) -> Self {
        Self(Value::String(value.to_owned()))
    }
}

fn config_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message)
}

fn as_number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|v| v as f64))
}

/// The key as it stands in [`KEYS`], or an error that names the nearest one.
fn known_key(key: &str) -> Result<&'static str> {
    KEYS.into_iter().find(|k| *k == key).ok_or_else(|| {
        let hint = match nearest(key, KEYS) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known keys are {}", KEYS.join(", ")),
        };
        config_error(format!("unknown key `{key}`; {hint}"))
    })
}

/// Reads one layer, each value with its line.
fn parse(text: &str, origin: &str) -> Result<Layer> {
    let wrong = |e: &dyn fmt::Display| config_error(e.to_string().trim_end()).at(origin);
    let keys = DeTable::parse(text).map_err(|e| wrong(&e))?;
    let mut values: toml::Table = text.parse().map_err(|e| wrong(&e))?;
    let mut layer = Layer::new();
    for spanned in keys.get_ref().keys() {
        let line = 1 + text[..spanned.span().start].matches('\n').count();
        let origin = format!("{origin}:{line}");
        let key = known_key(spanned.get_ref()).map_err(|e| e.at(&origin))?;
        if let Some(value) = values.remove(key) {
            layer.insert(key, Given { value, origin });
        }
    }
    Ok(layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(assignment: &str) -> String {
        let mut config = Config::new();
        config.assign(assignment).unwrap();
        let error = config.resolve("photo").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        error.to_string()
    }

    #[test]
    fn values_out_of_range_are_refused_with_key_value_and_range() {
        for (assignment, allowed) in [
            ("epochs=0", "a whole number from 1 to"),
            ("epochs=-5", "a whole number from 1 to"),
            ("epochs=1.5", "a whole number from 1 to"),
            ("epochs=many", "a whole number from 1 to"),
            ("temperature=0", "0.000001 or more, and finite"),
            ("temperature=-1.5", "0.000001 or more"),
            ("temperature=nan", "0.000001 or more"),
            ("temperature=inf", "0.000001 or more"),
            ("temperature=1e-44", "0.000001 or more"),
            ("edge_drop=[0.1, 1.0]", "below 1"),
            ("feature_drop=[-0.1, 0.2]", "below 1"),
            ("edge_drop=0.3", "two numbers"),
            ("edge_drop=[0.1, 0.2, 0.3]", "two numbers"),
            ("hidden_width=0", "from 1 to 65536"),
            ("embedding_width=9999999", "from 1 to 65536"),
            ("learning_rate=0", "from 1e-37 to"),
            ("learning_rate=1e-60", "from 1e-37 to"),
            ("weight_decay=-1e-5", "from 0 to 1"),
            ("ema_start=1.01", "from 0 to 1"),
            ("checkpoint_every=0", "from 1 to"),
            ("seed=-1", "from 0 to"),
            ("precision=f16", "\"auto\" or \"f32\" or \"bf16\""),
            ("method=gcn", "\"blnn\" or \"bgrl\""),
            ("objective=both", "\"paper\" or \"one-direction\" or \"published-code\""),
            ("statistics=\"none\"", "\"last-view\" or \"averaged\""),
        ] {
            let message = refusal(assignment);
            let key = assignment.split_once('=').unwrap().0;
            let place = format!("--set {assignment}: `{key}` must be ");
            assert!(message.starts_with(&place), "{message}");
            assert!(message.contains(allowed), "{message}");
            assert!(message.contains(", got "), "{message}");
        }
    }

    #[test]
    fn layers_override_in_order() {
        let mut config = Config::new();
        config.text("epochs = 50\nseed = 4\nmethod = \"bgrl\"", "a.toml").unwrap();
        config.assign("seed=5").unwrap();
        config.flag("seed", 6_u64);
        let plan = config.resolve("cs").unwrap();
        assert_eq!((plan.epochs, plan.seed, plan.method), (50, 6, Method::Bgrl));
        assert_eq!(plan.hidden_width, 512, "from the preset");
        assert_eq!(plan.objective, Objective::Paper, "from the default");
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "the very numbers that were published")]
    fn published_presets_hold_the_published_numbers() {
        let expected = [
            ("wikics", 1.8, [512, 256], [0.2, 0.3], [0.2, 0.1], 5e-4),
            ("photo", 1.9, [256, 128], [0.4, 0.1], [0.1, 0.2], 1e-4),
            ("computers", 1.1, [256, 128], [0.5, 0.4], [0.2, 0.1], 5e-4),
            ("cs", 0.8, [512, 256], [0.3, 0.2], [0.3, 0.4], 1e-5),
            ("physics", 1.9, [256, 128], [0.4, 0.1], [0.1, 0.4], 1e-5),
        ];
        for (dataset, temperature, widths, edges, features, rate) in expected {
            for method in Method::ALL {
                let mut config = Config::new();
                config.flag("method", method.name());
                let plan = config.resolve(dataset).unwrap();
                if method == Method::Blnn {
                    assert_eq!(plan.temperature, temperature);
                }
                assert_eq!([plan.hidden_width, plan.embedding_width], widths);
                assert_eq!((plan.edge_drop, plan.feature_drop), (edges, features));
                assert_eq!((plan.learning_rate, plan.weight_decay), (rate, 1e-5));
                assert_eq!((plan.epochs, plan.warmup_epochs), (10_000, 1_000));
                assert_eq!((plan.ema_start, plan.predictor_width), (0.99, 512));
            }
        }
    }

    #[test]
    fn a_graph_without_preset_gets_the_default() {
        let plan = Config::new().resolve("my-graph").unwrap();
        assert_eq!((plan.epochs, plan.warmup_epochs), (1000, 100));
    }

    #[test]
    fn warmup_keeps_its_share_when_epochs_change() {
        let mut config = Config::new();
        config.flag("epochs", 55_i64);
        assert_eq!(config.resolve("photo").unwrap().warmup_epochs, 5);
        config.flag("epochs", 1_i64);
        assert_eq!(config.resolve("photo").unwrap().warmup_epochs, 0);
        let mut together = Config::new();
        together.text("epochs = 40\nwarmup_epochs = 20", "a.toml").unwrap();
        assert_eq!(together.resolve("photo").unwrap().warmup_epochs, 20);
        together.flag("epochs", 10_i64);
        assert_eq!(together.resolve("photo").unwrap().warmup_epochs, 5);
    }

    #[test]
    fn a_warmup_of_its_own_is_taken_as_given() {
        let mut config = Config::new();
        config.assign("warmup_epochs=7").unwrap();
        config.flag("epochs", 20_i64);
        assert_eq!(config.resolve("photo").unwrap().warmup_epochs, 7);
        config.flag("epochs", 7_i64);
        let message = config.resolve("photo").unwrap_err().to_string();
        assert!(message.contains("must be below epochs (7), got 7"), "{message}");
        assert!(message.starts_with("--set warmup_epochs=7"), "{message}");
    }

    #[test]
    fn unknown_keys_name_file_line_and_the_nearest_key() {
        let text = "# settings\nepochs = 5\n\nlearning-rate = 0.1\n";
        let error = Config::new().text(text, "a.toml").unwrap_err().to_string();
        assert!(error.starts_with("a.toml:4: unknown key `learning-rate`"), "{error}");
        assert!(error.contains("did you mean `learning_rate`?"), "{error}");
    }

    #[test]
    fn a_key_like_no_other_lists_them_all() {
        let error = Config::new().assign("dropout=0.5").unwrap_err().to_string();
        assert!(error.contains("known keys are method, objective"), "{error}");
    }

    #[test]
    fn bgrl_has_one_objective() {
        let mut config = Config::new();
        config.assign("objective=published-code").unwrap();
        assert!(config.resolve("cora").is_ok());
        config.assign("method=bgrl").unwrap();
        let error = config.resolve("cora").unwrap_err().to_string();
        assert!(error.contains("`objective` must be \"paper\" for the method bgrl"), "{error}");
    }

    #[test]
    fn values_name_file_and_line() {
        let mut config = Config::new();
        config.text("seed = 1\ntemperature = -2\n", "a.toml").unwrap();
        let error = config.resolve("cora").unwrap_err().to_string();
        assert!(error.starts_with("a.toml:2: `temperature`"), "{error}");
    }

    #[test]
    fn text_that_is_no_toml_names_the_line() {
        let error = Config::new().text("epochs = \n", "a.toml").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().starts_with("a.toml: "), "{error}");
        assert!(error.to_string().contains("line 1"), "{error}");
    }

    #[test]
    fn assignments_need_an_equals_sign() {
        let error = Config::new().assign("epochs 5").unwrap_err().to_string();
        assert!(error.contains("key=value"), "{error}");
    }

    #[test]
    fn a_resolved_plan_reads_back_as_itself() {
        for dataset in ["cora", "photo", "cs", "elsewhere"] {
            let plan = Config::new().resolve(dataset).unwrap();
            let mut again = Config::new();
            again.text(&plan.to_toml(), "config.toml").unwrap();
            assert_eq!(again.resolve_over(Config::new()).unwrap(), plan);
        }
    }

    #[test]
    fn a_key_that_is_given_nowhere_is_missed_in_its_file() {
        let mut base = Config::new();
        base.text("method = \"blnn\"\nepochs = 5\n", "runs/a/config.toml").unwrap();
        let mut given = Config::new();
        given.assign("objective=paper").unwrap();
        let error = given.resolve_over(base).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert_eq!(
            error.to_string(),
            "runs/a/config.toml: `temperature` is missing; add a line for it"
        );
    }

    #[test]
    fn the_precision_is_settled_when_a_plan_is_made() {
        let resolved = |assignment: &str| {
            let mut config = Config::new();
            config.assign(assignment).unwrap();
            config.resolve("photo").unwrap()
        };
        assert_eq!(Config::new().resolve("photo").unwrap().precision(), Precision::F32);
        assert_eq!(resolved("precision=bf16").precision(), Precision::Bf16);
        assert!(resolved("precision=bf16").to_toml().contains("precision = \"bf16\"\n"));
        let auto = resolved("precision=auto");
        assert_eq!(auto.precision(), Precision::auto());
        assert!(!auto.to_toml().contains("auto"));
        let unset = Config::new().resolve_on_this_machine("photo").unwrap();
        assert_eq!(unset.precision(), Precision::auto());
        let mut given = Config::new();
        given.text("precision = \"bf16\"", "a.toml").unwrap();
        assert_eq!(given.resolve_on_this_machine("photo").unwrap().precision(), Precision::Bf16);
    }

    #[test]
    fn numbers_are_written_as_a_person_writes_them() {
        let text = Config::new().resolve("photo").unwrap().to_toml();
        assert!(text.contains("temperature = 1.9\n"), "{text}");
        assert!(text.contains("edge_drop = [0.4, 0.1]\n"), "{text}");
        let keys: Vec<&str> = text.lines().filter_map(|l| l.split(" = ").next()).collect();
        assert_eq!(keys, KEYS);
    }

    #[test]
    fn a_missing_file_is_an_error_of_the_system() {
        let error = Config::new().file(Path::new("no/such.toml")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
    }
}
