//! A real Chromium without a window, told what to do over the `WebDriver` protocol.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Chromium as tests need it: no window, no services of its own that would use the network.
const ARGUMENTS: [&str; 10] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
];

const INSTALL: &str = "apt-get install chromium chromium-driver";

/// A browser of its own with one page. Everything ends with the value.
pub(crate) struct Browser {
    driver: Child,
    session: String,
    agent: ureq::Agent,
    profile: tempfile::TempDir,
}

impl Browser {
    /// Opens a window of this size.
    pub(crate) fn open(width: u32, height: u32) -> Self {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|e| panic!("chromedriver: {e}; install it with: {INSTALL}"));
        let port = port_of(&mut driver);
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(Duration::from_mins(1)))
            .http_status_as_error(false)
            // The driver is on this machine, whatever proxy there is for others.
            .proxy(None)
            .build()
            .into();
        let profile = tempfile::tempdir().unwrap();
        let session = format!("http://127.0.0.1:{port}/session");
        let mut browser = Self { driver, session, agent, profile };
        browser.start(width, height);
        browser
    }

    fn start(&mut self, width: u32, height: u32) {
        let profile = format!("--user-data-dir={}", self.profile.path().display());
        let size = format!("--window-size={width},{height}");
        let own = [profile.as_str(), size.as_str()];
        let arguments: Vec<&str> = ARGUMENTS.into_iter().chain(own).collect();
        let answer = self.post(
            "",
            &json!({ "capabilities": { "alwaysMatch": {
                "goog:chromeOptions": { "args": arguments },
                "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
            } } }),
        );
        let id = answer["sessionId"].as_str().unwrap_or_else(|| panic!("no session: {answer}"));
        self.session = format!("{}/{id}", self.session);
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let address = format!("{}{path}", self.session);
        let request = self.agent.post(&address).header("Content-Type", "application/json");
        let mut response = request.send(body.to_string()).expect("the driver answers");
        let text = response.body_mut().with_config().limit(64 << 20).read_to_string().unwrap();
        let answer: Value = serde_json::from_str(&text).expect("an answer in JSON");
        let value = &answer["value"];
        assert!(value["error"].is_null(), "{path}: {value}");
        value.clone()
    }

    /// Sends a command of the browser's own protocol.
    pub(crate) fn devtools(&self, command: &str, parameters: &Value) {
        self.post("/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }));
    }

    /// Makes the window look like a phone's.
    pub(crate) fn be_a_phone(&self) {
        let size = json!({ "width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true });
        self.devtools("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Says which theme the system prefers.
    pub(crate) fn prefer(&self, theme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": theme });
        self.devtools("Emulation.setEmulatedMedia", &json!({ "features": [feature] }));
    }

    /// Opens a file and waits until the page says that it is ready.
    pub(crate) fn visit(&self, page: &std::path::Path) {
        // What the browser asked for on its own before is no concern of the page's.
        self.log("performance");
        self.post("/url", &json!({ "url": format!("file://{}", page.display()) }));
        self.wait("return document.documentElement.dataset.ready === 'true'");
        // Two frames later everything that was asked for has been drawn.
        self.settle();
    }

    /// Waits for two frames.
    pub(crate) fn settle(&self) {
        let script = "const done = arguments[0]; \
                      requestAnimationFrame(() => requestAnimationFrame(() => done(true)))";
        self.post("/execute/async", &json!({ "script": script, "args": [] }));
    }

    /// The value of a script that ends with `return`.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Waits until a script returns true.
    #[track_caller]
    pub(crate) fn wait(&self, script: &str) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.run(script) != json!(true) {
            assert!(Instant::now() < deadline, "never came: {script}; {:?}", self.complaints());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The text of the element that a selector finds.
    pub(crate) fn text(&self, selector: &str) -> String {
        let found = self.run(&format!("return document.querySelector({selector:?}).innerText"));
        found.as_str().unwrap_or_default().to_owned()
    }

    /// Clicks with the mouse at a place of the window.
    pub(crate) fn click_at(&self, x: f64, y: f64) {
        let to = json!({ "type": "pointerMove", "duration": 0, "x": x as i64, "y": y as i64 });
        let press = json!({ "type": "pointerDown", "button": 0 });
        let release = json!({ "type": "pointerUp", "button": 0 });
        let mouse = json!({ "type": "pointer", "id": "mouse", "actions": [to, press, release] });
        self.post("/actions", &json!({ "actions": [mouse] }));
        self.settle();
    }

    /// Presses keys one after the other.
    pub(crate) fn type_keys(&self, keys: &str) {
        let stroke = |key: char| {
            ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key.to_string() }))
        };
        let actions: Vec<Value> = keys.chars().flat_map(stroke).collect();
        let keyboard = json!({ "type": "key", "id": "keys", "actions": actions });
        self.post("/actions", &json!({ "actions": [keyboard] }));
        self.settle();
    }

    /// What the page complained of since it was last asked.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let message = |entry: &Value| entry["message"].as_str().unwrap_or_default().to_owned();
        self.log("browser").iter().map(message).collect()
    }

    /// Every address asked for since the visit but the page's own file, what it holds itself, and
    /// the browser's own pages.
    pub(crate) fn requests(&self) -> Vec<String> {
        let parse = |entry: &Value| -> Option<String> {
            let event: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
            let event = &event["message"];
            let sent = event["method"] == "Network.requestWillBeSent";
            sent.then(|| event["params"]["request"]["url"].as_str().map(str::to_owned)).flatten()
        };
        let inside = |url: &String| {
            ["file:", "data:", "blob:", "chrome:"].iter().any(|s| url.starts_with(s))
        };
        let all: Vec<String> = self.log("performance").iter().filter_map(parse).collect();
        assert!(!all.is_empty(), "the log must at least tell of the page itself");
        all.into_iter().filter(|url| !inside(url)).collect()
    }

    fn log(&self, kind: &str) -> Vec<Value> {
        let entries = self.post("/se/log", &json!({ "type": kind }));
        entries.as_array().cloned().unwrap_or_default()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ends the browser; the driver would leave it running.
        let _ = self.agent.delete(&self.session).call();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// The port the driver says it listens on.
fn port_of(driver: &mut Child) -> u16 {
    let mut output = BufReader::new(driver.stdout.take().expect("a pipe"));
    let mut line = String::new();
    loop {
        line.clear();
        let read = output.read_line(&mut line).expect("the driver speaks");
        assert!(read > 0, "the driver ended without a word of its port");
        let said =
            line.split("on port ").nth(1).and_then(|t| t.trim().trim_end_matches('.').parse().ok());
        if let Some(port) = said.filter(|&port| port > 0) {
            // Whatever else it prints must not fill the pipe.
            std::thread::spawn(move || output.read_to_end(&mut Vec::new()));
            return port;
        }
    }
}
