//! Settings: a valid plan or an error that names the place.
#![no_main]

use blnn::Config;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut config = Config::new();
    if config.text(text, "fuzzed.toml").is_ok() {
        if let Ok(plan) = config.resolve("photo") {
            let mut again = Config::new();
            again.text(&plan.to_toml(), "resolved.toml").expect("our own settings");
            assert_eq!(again.resolve("photo").expect("a valid plan"), plan);
        }
    }
});
