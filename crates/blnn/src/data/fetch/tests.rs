//! Downloads from a server on this machine that misbehaves in every way we know of.

use std::io::BufRead as _;
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

use super::*;

const STALL: Duration = Duration::from_millis(250);

/// What the server does with one request.
enum Answer {
    /// Sends the whole file, whatever was asked for.
    Whole,
    /// Sends the bytes that the `Range` header asks for.
    Rest,
    /// Announces the whole file and hangs up after so many bytes.
    Cut(usize),
    /// Announces the whole file and falls silent after so many bytes.
    Stall(usize),
    /// Sends so many bytes without announcing a length.
    Unannounced(usize),
    /// Claims to continue, but at another byte than asked.
    WrongRange,
    /// Sends another file of the same length.
    Lie,
    /// Sends no file, only this status.
    Status(&'static str),
}

/// Large enough not to fit into the buffers of a socket.
fn content() -> Vec<u8> {
    (0..300_000u32).map(|i| (i ^ (i >> 7)) as u8).collect()
}

/// A server that gives one answer a connection and then returns the requests it got.
fn serve(answers: Vec<Answer>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/file.bin", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let serve_next = |answer: Answer| respond(listener.accept().unwrap().0, &answer);
        answers.into_iter().map(serve_next).collect()
    });
    (address, server)
}

fn respond(mut stream: TcpStream, answer: &Answer) -> String {
    let request = read_request(&stream);
    let content = content();
    let n = content.len();
    let send = |stream: &mut TcpStream, head: String, body: &[u8]| {
        let head = format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n");
        // The client may hang up first; that is its right.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
    };
    let announced = format!("200 OK\r\nContent-Length: {n}");
    match *answer {
        Answer::Whole => send(&mut stream, announced, &content),
        Answer::Rest => {
            let start = range_start(&request).expect("a request for a range");
            let head = format!(
                "206 Partial Content\r\nContent-Length: {}\r\nContent-Range: bytes {start}-{}/{n}",
                n - start,
                n - 1
            );
            send(&mut stream, head, &content[start..]);
        }
        Answer::Cut(bytes) => send(&mut stream, announced, &content[..bytes]),
        Answer::Stall(bytes) => {
            send(&mut stream, announced, &content[..bytes]);
            wait_for_hang_up(&mut stream);
        }
        Answer::Unannounced(bytes) => send(&mut stream, "200 OK".into(), &content[..bytes]),
        Answer::WrongRange => {
            let head = format!(
                "206 Partial Content\r\nContent-Length: {n}\r\nContent-Range: bytes 0-{}/{n}",
                n - 1
            );
            send(&mut stream, head, &content);
        }
        Answer::Lie => send(&mut stream, announced, &vec![7; n]),
        Answer::Status(status) => send(&mut stream, format!("{status}\r\nContent-Length: 0"), &[]),
    }
    request
}

fn read_request(stream: &TcpStream) -> String {
    let lines = io::BufReader::new(stream).lines().map(Result::unwrap);
    lines.take_while(|line| !line.is_empty()).map(|line| line + "\n").collect()
}

fn range_start(request: &str) -> Option<usize> {
    let request = request.to_lowercase();
    let (_, range) = request.split_once("range: bytes=")?;
    range.split('-').next()?.parse().ok()
}

fn wait_for_hang_up(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let _ = stream.read(&mut [0]);
}

/// A folder and a download into it, whose check is equality with [`content`].
struct Trial {
    folder: tempfile::TempDir,
    progress: Vec<Progress>,
}

impl Trial {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), progress: Vec::new() }
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join("cache").join("file.bin")
    }

    fn part(&self) -> PathBuf {
        self.folder.path().join("cache").join("file.bin.part")
    }

    fn leave_part(&self, bytes: &[u8]) {
        fs::create_dir_all(self.folder.path().join("cache")).unwrap();
        fs::write(self.part(), bytes).unwrap();
    }

    fn run(&mut self, url: &str) -> Result<()> {
        let progress = &mut self.progress;
        progress.clear();
        let target = self.folder.path().join("cache").join("file.bin");
        let verify = |path: &Path| {
            if fs::read(path).unwrap() == content() {
                Ok(())
            } else {
                Err(Error::new(ErrorKind::Dataset, "wrong sum"))
            }
        };
        let download = Download {
            url,
            target: &target,
            connect_timeout: Duration::from_secs(2),
            stall_timeout: STALL,
            verify: &verify,
        };
        download.run(&mut |p| progress.push(p))
    }

    fn assert_complete(&self) {
        assert_eq!(fs::read(self.target()).unwrap(), content());
        assert!(!self.part().exists());
    }

    fn assert_nothing_under_its_name(&self) {
        assert!(!self.target().exists());
    }
}

fn message(result: Result<()>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Dataset);
    error.to_string()
}

#[test]
fn a_good_server_is_served_from() {
    let (url, server) = serve(vec![Answer::Whole]);
    let mut trial = Trial::new();
    trial.run(&url).unwrap();
    trial.assert_complete();
    let total = Some(content().len() as u64);
    assert_eq!(trial.progress.first(), Some(&Progress { received: 0, total }));
    assert_eq!(trial.progress.last(), Some(&Progress { received: 300_000, total }));
    let requests = server.join().unwrap();
    assert!(range_start(&requests[0]).is_none());
}

#[test]
fn a_file_that_is_there_is_replaced() {
    let (url, _server) = serve(vec![Answer::Whole]);
    let mut trial = Trial::new();
    trial.leave_part(b"");
    fs::write(trial.target(), "old").unwrap();
    trial.run(&url).unwrap();
    trial.assert_complete();
}

#[test]
fn a_stall_ends_in_time_and_the_download_continues() {
    let (url, server) = serve(vec![Answer::Stall(120_000), Answer::Rest]);
    let mut trial = Trial::new();
    let start = std::time::Instant::now();
    let text = message(trial.run(&url));
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    assert!(text.contains("silent for 0.25 s after 120000 of 300000 bytes"), "{text}");
    trial.assert_nothing_under_its_name();
    trial.run(&url).unwrap();
    trial.assert_complete();
    assert_eq!(trial.progress[0].received, 120_000);
    assert_eq!(range_start(&server.join().unwrap()[1]), Some(120_000));
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/file.bin", listener.local_addr().unwrap());
    let text = message(Trial::new().run(&url));
    assert!(text.contains("no answer") && text.contains(&url), "{text}");
}

#[test]
fn an_unreachable_server_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/file.bin", listener.local_addr().unwrap());
    drop(listener);
    let text = message(Trial::new().run(&url));
    assert!(text.contains("no answer") && text.contains(&url), "{text}");
}

#[test]
fn a_cut_is_noticed_and_the_download_continues() {
    let (url, server) = serve(vec![Answer::Cut(200_000), Answer::Rest]);
    let mut trial = Trial::new();
    let text = message(trial.run(&url));
    assert!(text.contains("broke off after 200000 of 300000 bytes"), "{text}");
    assert!(text.contains("run the command again"), "{text}");
    trial.assert_nothing_under_its_name();
    trial.run(&url).unwrap();
    trial.assert_complete();
    assert_eq!(range_start(&server.join().unwrap()[1]), Some(200_000));
}

#[test]
fn a_cut_without_a_length_is_caught_by_the_check() {
    let (url, _server) = serve(vec![Answer::Unannounced(100), Answer::Unannounced(300_000)]);
    let mut trial = Trial::new();
    assert!(message(trial.run(&url)).contains("wrong sum"));
    assert!(!trial.part().exists());
    trial.run(&url).unwrap();
    trial.assert_complete();
}

#[test]
fn a_lie_is_removed_and_told() {
    let (url, _server) = serve(vec![Answer::Lie]);
    let mut trial = Trial::new();
    let text = message(trial.run(&url));
    assert!(text.contains("another file than the published one: wrong sum"), "{text}");
    trial.assert_nothing_under_its_name();
    assert!(!trial.part().exists());
}

#[test]
fn a_lie_does_not_touch_the_file_that_was_there() {
    let (url, _server) = serve(vec![Answer::Lie]);
    let mut trial = Trial::new();
    trial.leave_part(b"");
    fs::write(trial.target(), "old").unwrap();
    message(trial.run(&url));
    assert_eq!(fs::read(trial.target()).unwrap(), b"old");
}

#[test]
fn a_server_that_ignores_the_range_is_read_from_the_start() {
    let (url, server) = serve(vec![Answer::Whole]);
    let mut trial = Trial::new();
    trial.leave_part(&[9; 1000]);
    trial.run(&url).unwrap();
    trial.assert_complete();
    assert_eq!(range_start(&server.join().unwrap()[0]), Some(1000));
}

#[test]
fn a_server_that_cannot_continue_is_asked_for_the_whole() {
    for answer in [Answer::Status("416 Range Not Satisfiable"), Answer::WrongRange] {
        let (url, server) = serve(vec![answer, Answer::Whole]);
        let mut trial = Trial::new();
        // Longer than the file, as after a change at the publisher's.
        trial.leave_part(&vec![9; 400_000]);
        trial.run(&url).unwrap();
        trial.assert_complete();
        let requests = server.join().unwrap();
        assert_eq!(range_start(&requests[0]), Some(400_000));
        assert_eq!(range_start(&requests[1]), None);
    }
}

#[test]
fn a_part_of_another_file_is_dropped_after_the_check() {
    let (url, _server) = serve(vec![Answer::Rest, Answer::Whole]);
    let mut trial = Trial::new();
    trial.leave_part(&[9; 1000]);
    assert!(message(trial.run(&url)).contains("wrong sum"));
    trial.run(&url).unwrap();
    trial.assert_complete();
}

#[test]
fn refusals_are_told_with_their_status() {
    for status in ["404 Not Found", "500 Internal Server Error", "403 Forbidden"] {
        let (url, _server) = serve(vec![Answer::Status(status)]);
        let mut trial = Trial::new();
        let text = message(trial.run(&url));
        assert!(text.contains(status), "{text}");
        trial.assert_nothing_under_its_name();
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let mut trial = Trial::new();
    fs::write(trial.folder.path().join("cache"), "a file in the folder's place").unwrap();
    let error = trial.run("http://127.0.0.1:9/file.bin").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("cache"), "{error}");
}

#[test]
fn two_downloads_of_one_file_do_not_mix() {
    let mut trial = Trial::new();
    trial.leave_part(b"begun");
    let held = File::open(trial.part()).unwrap();
    held.lock().unwrap();
    let text = message(trial.run("http://127.0.0.1:9/file.bin"));
    assert!(text.contains("another process"), "{text}");
    assert_eq!(fs::read(trial.part()).unwrap(), b"begun");
}
