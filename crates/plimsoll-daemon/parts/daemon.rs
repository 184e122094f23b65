//! The daemon of a test, on a scripted machine.

use std::fs;
use std::path::Path;
use std::time::Duration;

use plimsoll::book::Book;
use plimsoll_daemon::broker::Settings;
use plimsoll_daemon::engines::keeper::EngineOptions;
use plimsoll_daemon::server::{ServeOptions, serve};
use plimsoll_daemon::truth::scripted::Scripted;

/// Serves, and writes down where.
pub(crate) fn play(folder: &Path) {
    let settings = Settings { margin: 1.0, ..Settings::default() };
    let sources: Vec<Box<dyn plimsoll_daemon::truth::Truth>> =
        vec![Box::new(Scripted::new(&folder.join("truth.toml")))];
    let options = ServeOptions {
        socket: folder.join("run/serve.sock"),
        http: Some("127.0.0.1:0".parse().unwrap()),
        settings,
        sources,
        period: Duration::from_millis(200),
        engines: EngineOptions::default(),
        book: Some(Book::at(folder.join("book"))),
    };
    serve(options, |ready| {
        let address = ready.http.map_or_else(String::new, |address| address.to_string());
        fs::write(folder.join("address.new"), address).unwrap();
        fs::rename(folder.join("address.new"), folder.join("address")).unwrap();
    })
    .unwrap();
}
