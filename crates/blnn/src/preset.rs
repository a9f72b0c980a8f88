//! Presets: the hyper-parameters of each method on each data set, compiled in from `configs/`.
//!
//! `configs/<method>/<dataset>.toml` holds what the authors published for WikiCS, Photo,
//! Computers, CS and Physics. Cora's are our own and say so. `configs/default.toml` serves all
//! other graphs and lists every key.

use crate::plan::Method;

/// Every key with the value it has when nothing else is said.
pub(crate) const DEFAULT: &str = include_str!("../../../configs/default.toml");

/// One preset file.
#[derive(Debug)]
pub(crate) struct Preset {
    /// `<method>/<dataset>`, the file's place below `configs/`.
    pub(crate) path: &'static str,
    /// Its contents.
    pub(crate) text: &'static str,
}

macro_rules! presets {
    ($($path:literal),* $(,)?) => {
        [$(Preset {
            path: $path,
            text: include_str!(concat!("../../../configs/", $path, ".toml")),
        }),*]
    };
}

static PRESETS: [Preset; 12] = presets![
    "blnn/cora",
    "blnn/photo",
    "blnn/computers",
    "blnn/cs",
    "blnn/physics",
    "blnn/wikics",
    "bgrl/cora",
    "bgrl/photo",
    "bgrl/computers",
    "bgrl/cs",
    "bgrl/physics",
    "bgrl/wikics",
];

/// The preset of a method on a data set. The ablations of BGRL share BGRL's, as in the paper.
pub(crate) fn find(method: Method, dataset: &str) -> Option<&'static Preset> {
    let family = match method {
        Method::Blnn => "blnn",
        Method::Bgrl | Method::BgrlNoisy | Method::BgrlClean => "bgrl",
    };
    let wanted = format!("{family}/{dataset}");
    PRESETS.iter().find(|preset| preset.path == wanted)
}
