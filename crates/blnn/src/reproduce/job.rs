//! [`TrainingJob`]: one model to train; and which models a target needs.

use std::fmt::Write;

use crate::config::Config;
use crate::data;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{Method, Objective, Plan, Precision, as_written};

use super::Options;
use super::target::Target;

/// Epochs of the temperature sweep unless the user says otherwise: twenty full trainings for each
/// data set would take days.
pub const SHORT_EPOCHS: usize = 1_000;

/// Epochs of every training in the paper.
pub(super) const PAPER_EPOCHS: usize = 10_000;

/// Evaluations of a full-length run are this many epochs apart, as in the paper.
const PAPER_CADENCE: usize = 250;

/// A shorter run is scored this often.
const SHORT_EVALUATIONS: usize = 8;

/// Settings that are the axes of the plan, and the flags that set them.
const AXES: [(&str, &str); 4] = [
    ("method", "--methods"),
    ("objective", "--objectives"),
    ("epochs", "--epochs"),
    ("seed", "--seeds"),
];

/// Longer names than this are not sure to fit on every file system.
const MAX_KEY: usize = 150;

/// One model to train, once, for all targets that need it.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingJob {
    dataset: &'static str,
    plan: Plan,
    /// What the user set beyond preset and axes, as `key=value`.
    settings: Vec<String>,
    /// The preset's temperature, to tell whether the job's is another one.
    preset_temperature: f32,
}

/// What distinguishes the models of one data set and seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Variant {
    method: Method,
    objective: Objective,
    temperature: Option<f64>,
}

impl TrainingJob {
    fn new(
        options: &Options,
        dataset: &'static str,
        variant: Variant,
        seed: u64,
        epochs: Option<usize>,
    ) -> Result<Self> {
        let mut config = Config::new();
        for setting in &options.settings {
            config.assign(setting)?;
        }
        config.flag("method", variant.method.name());
        config.flag("objective", variant.objective.name());
        config.flag("seed", seed);
        if let Some(epochs) = epochs {
            config.flag("epochs", epochs as u64);
        }
        if let Some(temperature) = variant.temperature {
            config.assign(&format!("temperature={temperature}"))?;
        }
        let plan = config.resolve(dataset)?;
        let mut preset = Config::new();
        preset.flag("method", variant.method.name());
        let preset_temperature = preset.resolve(dataset)?.temperature;
        let precision = plan.precision;
        let job = Self { dataset, plan, settings: options.settings.clone(), preset_temperature };
        // One model has one name, whether its precision was set, left to the machine or to us.
        Ok(job.in_precision(precision))
    }

    /// The data set's name.
    pub fn dataset(&self) -> &'static str {
        self.dataset
    }

    /// Every setting of the training.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The same model in another precision.
    pub(super) fn in_precision(&self, precision: Precision) -> Self {
        let [default, ..] = Precision::ALL;
        let mut other = self.clone();
        other.plan.precision = precision;
        other.settings.retain(|setting| key_of(setting) != "precision");
        if precision != default {
            other.settings.push(format!("precision={}", precision.name()));
        }
        other
    }

    /// The method as tables name it.
    pub fn label(&self) -> &'static str {
        label(self.plan.method, self.plan.objective)
    }

    /// The method's name in the published tables.
    pub fn published_label(&self) -> &'static str {
        label(self.plan.method, Objective::Paper)
    }

    /// τ, for the method that has one.
    pub fn temperature(&self) -> Option<f64> {
        (self.plan.method == Method::Blnn).then(|| as_written(self.plan.temperature))
    }

    /// Whether τ is the one the authors chose for this data set, or the method has none.
    pub fn has_preset_temperature(&self) -> bool {
        self.temperature().is_none() || self.plan.temperature == self.preset_temperature
    }

    /// The name of the run's folder: equal for equal jobs, and readable.
    pub fn key(&self) -> String {
        let Plan { method, objective, seed, epochs, .. } = &self.plan;
        let mut key = format!("{}-{}", self.dataset, method.name());
        if *objective != Objective::Paper {
            let _ = write!(key, "-{}", objective.name());
        }
        if let Some(temperature) = self.temperature() {
            let _ = write!(key, "-t{temperature}");
        }
        let _ = write!(key, "-seed{seed}-{epochs}epochs");
        let plain = |c: char| if c.is_ascii_alphanumeric() || "=._-".contains(c) { c } else { '_' };
        for setting in &self.settings {
            key.push('-');
            key.extend(setting.chars().filter(|c| !c.is_whitespace()).map(plain));
        }
        // Two jobs cut to one name are told apart by their settings, which are compared.
        key.truncate(MAX_KEY);
        key
    }

    /// The command that trains this very model.
    pub fn command(&self, eval_every: usize) -> String {
        let Plan { method, objective, precision, seed, epochs, .. } = &self.plan;
        let mut command = format!("blnn train {} --method {}", self.dataset, method.name());
        if *objective != Objective::Paper {
            let _ = write!(command, " --set objective={}", objective.name());
        }
        // These two are named below, once.
        let is_apart = |setting: &&String| ["temperature", "precision"].contains(&key_of(setting));
        for setting in self.settings.iter().filter(|setting| !is_apart(setting)) {
            let plain = |c: char| c.is_ascii_alphanumeric() || "=._+-".contains(c);
            let quote = if setting.chars().all(plain) { "" } else { "'" };
            let _ = write!(command, " --set {quote}{setting}{quote}");
        }
        if let Some(temperature) = self.temperature().filter(|_| !self.has_preset_temperature()) {
            let _ = write!(command, " --set temperature={temperature}");
        }
        // Where bfloat16 is fast, training would choose another arithmetic by itself.
        let _ = write!(command, " --precision {}", precision.name());
        command + &format!(" --epochs {epochs} --seed {seed} --eval-every {eval_every}")
    }

    /// Work of one epoch in units that compare data sets: billions of operations, roughly.
    pub fn epoch_cost(&self) -> f64 {
        match self.dataset {
            "wikics" => 58.0,
            "photo" => 15.0,
            "computers" => 28.0,
            "cs" => 65.0,
            "physics" => 46.0,
            _ => 2.0,
        }
    }

    /// Epochs between evaluations if nothing is said: the paper's 250, or an eighth of a run that
    /// is too short for that.
    pub fn default_cadence(&self) -> usize {
        PAPER_CADENCE.min(self.plan.epochs.div_ceil(SHORT_EVALUATIONS))
    }
}

/// A method in a form of its objective, as tables name it; BGRL has one form.
pub(super) fn label(method: Method, form: Objective) -> &'static str {
    match (method, form) {
        (Method::Bgrl, _) => "BGRL",
        (Method::BgrlNoisy, Objective::Paper) => "BGRL, noisy",
        (Method::BgrlNoisy, Objective::OneDirection) => "BGRL, noisy (one direction)",
        (Method::BgrlNoisy, Objective::PublishedCode) => "BGRL, noisy (published code)",
        (Method::BgrlClean, Objective::Paper) => "BGRL, clean",
        (Method::BgrlClean, Objective::OneDirection) => "BGRL, clean (one direction)",
        (Method::BgrlClean, Objective::PublishedCode) => "BGRL, clean (published code)",
        (Method::Blnn, Objective::Paper) => "BLNN",
        (Method::Blnn, Objective::OneDirection) => "BLNN (one direction)",
        (Method::Blnn, Objective::PublishedCode) => "BLNN (published code)",
    }
}

/// The key of an assignment `key=value`.
fn key_of(setting: &str) -> &str {
    setting.split('=').next().unwrap_or_default().trim()
}

/// Refuses assignments to settings that the plan itself varies.
pub(super) fn check_settings(settings: &[String]) -> Result<()> {
    for setting in settings {
        let key = key_of(setting);
        if let Some((_, flag)) = AXES.iter().find(|(axis, _)| *axis == key) {
            let message = format!("`{key}` is what the plan varies; choose it by {flag} instead");
            return Err(Error::new(ErrorKind::Config, message).at(format!("--set {setting}")));
        }
        Config::new().assign(setting)?;
    }
    Ok(())
}

/// The registry's name of each data set a user named, each once.
///
/// # Errors
/// If a name is unknown; the message has the nearest one, or all.
pub fn dataset_names<S: AsRef<str>>(given: &[S]) -> Result<Vec<&'static str>> {
    let mut names = Vec::new();
    for name in given.iter().map(AsRef::as_ref) {
        let Some(dataset) = data::find(name) else {
            return Err(unknown_dataset(name));
        };
        if !names.contains(&dataset.name) {
            names.push(dataset.name);
        }
    }
    Ok(names)
}

fn unknown_dataset(name: &str) -> Error {
    if Target::ALL.iter().any(|target| target.name() == name) {
        let message =
            format!("`{name}` is a target, not a data set; name targets before --datasets");
        return Error::new(ErrorKind::Dataset, message);
    }
    let names = || data::registry().iter().map(|dataset| dataset.name);
    let hint = match crate::nearest::nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are {}", names().collect::<Vec<_>>().join(", ")),
    };
    Error::new(ErrorKind::Dataset, format!("unknown data set `{name}`; {hint}"))
}

/// The models a target needs of one data set, all seeds of a variant in a row.
pub(super) fn jobs_of(
    options: &Options,
    target: Target,
    dataset: &'static str,
) -> Result<Vec<TrainingJob>> {
    let short = (target == Target::Temperature).then_some(SHORT_EPOCHS);
    let epochs = options.epochs.or(short);
    let mut jobs = Vec::new();
    for variant in variants(target, options) {
        for seed in 1..=options.seeds {
            jobs.push(TrainingJob::new(options, dataset, variant, seed, epochs)?);
        }
    }
    Ok(jobs)
}

/// The variants that a target shows, of the methods that are asked for.
pub(super) fn variants(target: Target, options: &Options) -> Vec<Variant> {
    let mut shown = all_variants(target, options);
    shown.retain(|variant| options.methods.is_empty() || options.methods.contains(&variant.method));
    shown
}

fn all_variants(target: Target, options: &Options) -> Vec<Variant> {
    let forms = |method: Method, temperature: Option<f64>| {
        let of = move |&objective: &Objective| Variant { method, objective, temperature };
        options.objectives.iter().map(of).collect::<Vec<_>>()
    };
    let blnn = |temperature| forms(Method::Blnn, temperature);
    let bgrl =
        vec![Variant { method: Method::Bgrl, objective: Objective::Paper, temperature: None }];
    let ablations = [forms(Method::BgrlNoisy, None), forms(Method::BgrlClean, None)].concat();
    match target {
        Target::Datasets => vec![],
        Target::Classification | Target::Clustering | Target::Similarity | Target::Map => {
            [bgrl, blnn(None)].concat()
        }
        Target::Ablation => [bgrl, blnn(None), ablations].concat(),
        Target::Motivation => [bgrl, ablations].concat(),
        Target::CaseStudy => blnn(None),
        Target::Temperature => {
            let steps =
                options.temperatures.iter().flat_map(|&temperature| blnn(Some(temperature)));
            bgrl.into_iter().chain(steps).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(target: Target, dataset: &'static str, options: &Options) -> Vec<String> {
        let jobs = jobs_of(options, target, dataset).unwrap();
        jobs.iter().map(TrainingJob::key).collect()
    }

    #[test]
    fn jobs_have_readable_names_and_the_command_that_trains_them() {
        let mut options = Options::new("out");
        options.seeds = 2;
        options.objectives = Objective::ALL.to_vec();
        let jobs = jobs_of(&options, Target::Classification, "photo").unwrap();
        let keys: Vec<String> = jobs.iter().map(TrainingJob::key).collect();
        let wanted = [
            "photo-bgrl-seed1-10000epochs",
            "photo-bgrl-seed2-10000epochs",
            "photo-blnn-t1.9-seed1-10000epochs",
            "photo-blnn-t1.9-seed2-10000epochs",
            "photo-blnn-one-direction-t1.9-seed1-10000epochs",
            "photo-blnn-one-direction-t1.9-seed2-10000epochs",
            "photo-blnn-published-code-t1.9-seed1-10000epochs",
            "photo-blnn-published-code-t1.9-seed2-10000epochs",
        ];
        assert_eq!(keys, wanted);
        assert_eq!(
            jobs[6].command(250),
            "blnn train photo --method blnn --set objective=published-code --precision f32 \
             --epochs 10000 --seed 1 --eval-every 250"
        );
        assert_eq!(jobs[0].default_cadence(), 250);
    }

    #[test]
    fn the_sweep_is_short_unless_told_otherwise() {
        let mut options = Options::new("out");
        let sweep = keys(Target::Temperature, "cs", &options);
        assert_eq!(sweep.len(), 21);
        assert_eq!(sweep[1], "cs-blnn-t0.1-seed1-1000epochs");
        assert_eq!(sweep[20], "cs-blnn-t2-seed1-1000epochs");
        options.epochs = Some(40);
        assert_eq!(keys(Target::Temperature, "cs", &options)[0], "cs-bgrl-seed1-40epochs");
        let jobs = jobs_of(&options, Target::Temperature, "cs").unwrap();
        assert!(jobs[8].has_preset_temperature() && !jobs[7].has_preset_temperature());
        assert!(jobs[7].command(5).contains("--set temperature=0.7 --precision f32 --epochs 40"));
        assert_eq!(jobs[7].default_cadence(), 5);
    }

    #[test]
    fn methods_may_be_chosen_among_those_of_a_target() {
        let mut options = Options::new("out");
        options.methods = vec![Method::Blnn, Method::BgrlClean];
        let wanted = ["cs-blnn-t0.8-seed1-10000epochs", "cs-bgrl-clean-seed1-10000epochs"];
        assert_eq!(keys(Target::Ablation, "cs", &options), wanted);
        assert_eq!(keys(Target::Classification, "cs", &options), wanted[..1]);
    }

    #[test]
    fn settings_are_part_of_the_name() {
        let mut options = Options::new("out");
        options.settings = vec!["statistics=last-view".into(), "edge_drop=[0.1, 0.2]".into()];
        let keys = keys(Target::CaseStudy, "cora", &options);
        assert!(keys[0].ends_with("epochs-statistics=last-view-edge_drop=_0.1_0.2_"), "{keys:?}");
        let command = jobs_of(&options, Target::CaseStudy, "cora").unwrap()[0].command(250);
        let set = "--set statistics=last-view --set 'edge_drop=[0.1, 0.2]' --precision f32";
        assert!(command.contains(set), "{command}");
    }

    #[test]
    fn a_model_in_another_precision_has_the_name_of_one_that_was_set_to_it() {
        let mut options = Options::new("out");
        let plain = jobs_of(&options, Target::CaseStudy, "photo").unwrap().remove(0);
        options.settings = vec!["precision=bf16".into()];
        let bf16 = jobs_of(&options, Target::CaseStudy, "photo").unwrap().remove(0);
        assert!(bf16.command(250).contains(" --method blnn --precision bf16 --epochs"));
        assert_eq!(plain.in_precision(Precision::Bf16), bf16);
        assert_eq!(bf16.in_precision(Precision::F32), plain);
        options.settings = vec!["precision = f32".into()];
        assert_eq!(jobs_of(&options, Target::CaseStudy, "photo").unwrap()[0], plain);
    }

    #[test]
    fn the_authors_temperature_is_theirs_whatever_was_set() {
        let mut options = Options::new("out");
        options.settings = vec!["temperature=0.5".into()];
        options.temperatures = vec![0.5, 1.9];
        let jobs = jobs_of(&options, Target::Temperature, "photo").unwrap();
        assert!(!jobs[1].has_preset_temperature() && jobs[2].has_preset_temperature());
        assert!(jobs[1].command(250).contains("--set temperature=0.5 --precision"));
        let jobs = jobs_of(&options, Target::CaseStudy, "photo").unwrap();
        assert!(jobs[0].command(250).contains(" blnn --set temperature=0.5 --precision"));
    }

    #[test]
    fn ablations_follow_the_form_of_the_objective() {
        let mut options = Options::new("out");
        options.objectives = vec![Objective::PublishedCode];
        let jobs = jobs_of(&options, Target::Ablation, "photo").unwrap();
        assert_eq!(jobs[2].key(), "photo-bgrl-noisy-published-code-seed1-10000epochs");
        assert_eq!(jobs[2].label(), "BGRL, noisy (published code)");
        assert_eq!(jobs[2].published_label(), "BGRL, noisy");
        assert!(jobs[3].command(250).contains("bgrl-clean --set objective=published-code"));
    }

    #[test]
    fn axes_of_the_plan_and_unknown_names_are_refused() {
        let refusal = |s: &str| check_settings(&[s.to_owned()]).unwrap_err().to_string();
        assert!(refusal("seed=3").contains("--seeds instead"));
        assert!(refusal("epochs = 3").contains("--epochs instead"));
        assert!(refusal("sed=3").contains("did you mean `seed`?"));
        let error = dataset_names(&["phtoo"]).unwrap_err().to_string();
        assert!(error.contains("did you mean `photo`?"), "{error}");
        assert_eq!(dataset_names(&["Computer", "computers"]).unwrap(), ["computers"]);
    }
}
