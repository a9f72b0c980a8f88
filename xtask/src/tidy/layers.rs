//! The direction of dependencies inside the library: a module uses only layers below its own.

use std::collections::BTreeMap;

use super::File;
use super::source::{code_lines, is_word, without_tests};

const LIBRARY: &str = "crates/blnn/src/";

struct Layer {
    modules: &'static [&'static str],
    /// How many of the lowest layers these modules may use.
    sees: usize,
    /// Whether the modules of this layer may use each other.
    mutual: bool,
}

/// From the ground up. A new module needs a place here: that is the moment to think about it.
const LAYERS: [Layer; 11] = [
    Layer {
        modules: &[
            "error",
            "atomic",
            "guarded",
            "natural",
            "nearest",
            "npy",
            "published",
            "rng",
            "search",
            "text",
        ],
        sees: 0,
        mutual: true,
    },
    Layer { modules: &["graph", "sizes"], sees: 1, mutual: true },
    Layer { modules: &["config", "plan", "preset"], sees: 2, mutual: true },
    Layer { modules: &["augment", "cost", "order"], sees: 3, mutual: false },
    Layer { modules: &["nn"], sees: 4, mutual: false },
    Layer { modules: &["optim"], sees: 5, mutual: false },
    Layer { modules: &["method"], sees: 6, mutual: false },
    // Readers make graphs and nothing else; no model reads a file of data.
    Layer { modules: &["data"], sees: 2, mutual: false },
    // These score anybody's matrices: they know no settings, no model, no training.
    Layer { modules: &["eval", "project", "report"], sees: 2, mutual: false },
    Layer {
        modules: &[
            "checkpoint",
            "collapse",
            "estimate",
            "export",
            "model",
            "run",
            "run_report",
            "stored_run",
            "tensorboard",
            "train",
            "trainer",
            "vectors",
        ],
        sees: 9,
        mutual: true,
    },
    // The paper's experiments are users of all the rest.
    Layer { modules: &["reproduce"], sees: 10, mutual: false },
];

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.modules.contains(&module))
}

fn may_use(user: &str, used: &str) -> bool {
    let (Some(from), Some(to)) = (layer_of(user), layer_of(used)) else {
        return false;
    };
    user == used || to < LAYERS[from].sees || (from == to && LAYERS[from].mutual)
}

/// One complaint for each use that goes up or sideways, and for each module without a layer.
pub(super) fn check(files: &[File]) -> Vec<String> {
    let in_library = |file: &&File| file.path.starts_with(LIBRARY) && file.is_a("rs");
    let is_root = |file: &&File| file.path == format!("{LIBRARY}lib.rs");
    let root = files.iter().find(is_root).map_or("", |file| &file.text);
    let exports = exports_of(root);
    let modules = files.iter().filter(in_library).filter(|file| !is_root(file));
    modules.flat_map(|file| check_file(file, &exports)).collect()
}

fn check_file(file: &File, exports: &BTreeMap<String, String>) -> Vec<String> {
    let user = module_of(&file.path);
    if layer_of(user).is_none() {
        return vec![format!(
            "{}: module `{user}` has no layer; give it one in xtask/src/tidy/layers.rs",
            file.path
        )];
    }
    let lines = code_lines(without_tests(&file.text));
    let used = uses_of(&lines.join("\n"));
    let resolved = used.iter().map(|name| exports.get(name).unwrap_or(name));
    let wrong = resolved.filter(|used| !may_use(user, used));
    wrong.map(|used| format!("{}: `{user}` must not use `{used}`", file.path)).collect()
}

/// The library module a file belongs to.
fn module_of(path: &str) -> &str {
    let inside = path.strip_prefix(LIBRARY).unwrap_or(path);
    let first = inside.split('/').next().unwrap_or(inside);
    first.strip_suffix(".rs").unwrap_or(first)
}

/// The first name of each path that starts at the crate's root, also inside braces.
fn uses_of(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, start) in code.match_indices("crate::") {
        if code[..at].ends_with(|c| is_word(c) || c == '$') {
            continue;
        }
        let path = &code[at + start.len()..];
        match path.strip_prefix('{') {
            Some(list) => names.extend(names_in_braces(list)),
            None => names.extend(leading_name(path)),
        }
    }
    names
}

/// The first name of each item of a `{…}` list whose opening brace is already gone.
fn names_in_braces(list: &str) -> Vec<String> {
    let (mut depth, mut item_starts, mut names) = (0, true, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            '{' => depth += 1,
            ',' if depth == 0 => item_starts = true,
            _ if item_starts && is_word(c) => {
                names.extend(leading_name(&list[at..]));
                item_starts = false;
            }
            _ => {}
        }
    }
    names
}

fn leading_name(path: &str) -> Option<String> {
    let end = path.find(|c| !is_word(c)).unwrap_or(path.len());
    (end > 0).then(|| path[..end].to_owned())
}

/// Which module each re-exported name of `lib.rs` comes from, so that `crate::Graph` counts as a
/// use of `graph`.
fn exports_of(root: &str) -> BTreeMap<String, String> {
    let code = code_lines(root).join("\n");
    let mut exports = BTreeMap::new();
    for statement in code.split(';') {
        let Some((_, path)) = statement.split_once("use ") else {
            continue;
        };
        let Some((module, names)) = path.trim().split_once("::") else {
            continue;
        };
        for name in names.split(|c| !is_word(c)).filter(|name| !name.is_empty()) {
            exports.insert(name.to_owned(), module.to_owned());
        }
    }
    exports
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        let file = |path: &str, text: &str| File {
            path: format!("{LIBRARY}{path}"),
            text: text.to_owned(),
        };
        let root = file("lib.rs", "mod graph;\npub use graph::{Features, Graph};\n");
        check(&[root, file(path, text)])
    }

    #[test]
    fn lower_layers_may_be_used() {
        assert!(complaints("graph.rs", "use crate::error::Error;").is_empty());
        assert!(complaints("method/blnn.rs", "use crate::nn::tape;\nuse crate::Graph;").is_empty());
        assert!(complaints("method/mod.rs", "use crate::method::blnn::Blnn;").is_empty());
        assert!(complaints("train.rs", "use crate::{eval::score, method, rng};").is_empty());
        assert!(complaints("nn/inputs.rs", "use crate::augment::View;").is_empty());
        assert!(complaints("plan.rs", "use crate::config::KEYS;").is_empty());
    }

    #[test]
    fn upper_and_sideways_layers_may_not() {
        assert_eq!(complaints("graph.rs", "use crate::plan::Plan;").len(), 1);
        assert_eq!(complaints("nn/tape.rs", "use crate::data::npz;").len(), 1);
        assert_eq!(complaints("nn.rs", "use crate::{error::Error, method::{a, b}};").len(), 1);
        assert_eq!(complaints("nn.rs", "fn f(p: &crate::train::State) {}").len(), 1);
    }

    #[test]
    fn the_evaluator_knows_no_training() {
        assert_eq!(complaints("eval/mod.rs", "use crate::method::bgrl;").len(), 1);
        assert_eq!(complaints("eval/mod.rs", "use crate::plan::Plan;").len(), 1);
        assert!(complaints("eval/mod.rs", "use crate::{graph::Splits, rng::Rng};").is_empty());
    }

    #[test]
    fn a_new_module_needs_a_layer() {
        assert!(complaints("novelty.rs", "")[0].contains("no layer"));
    }

    #[test]
    fn comments_and_tests_are_free() {
        let text = "//! See [`crate::train`].\nfn f() {}\n#[cfg(test)]\nmod tests {\n    \
                    use crate::train::run;\n}\n";
        assert!(complaints("graph.rs", text).is_empty());
    }
}
