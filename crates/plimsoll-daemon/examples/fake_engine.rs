//! One fake engine as a program of its own: `fake_engine KIND PORT FOLDER`. It prints the port it listens on and serves until
//! its input ends. What it holds is written into a file of the folder that has the number of its process, for a scripted
//! driver.

#[expect(dead_code, reason = "tests make it misbehave, the program does not")]
#[path = "../tests/fakes/mod.rs"]
mod fakes;

use std::io::Read;
use std::path::PathBuf;

use plimsoll_daemon::engines::EngineKind;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, port, folder] = &arguments[..] else {
        eprintln!("usage: fake_engine KIND PORT FOLDER");
        std::process::exit(2);
    };
    let (Some(kind), Ok(port)) = (EngineKind::named(kind), port.parse()) else {
        eprintln!("no such kind of engine, or no such port: {kind} {port}");
        std::process::exit(2);
    };
    match fakes::Fake::on(kind, port, Some(PathBuf::from(folder).join(std::process::id().to_string()))) {
        Ok(fake) => {
            println!("{}", fake.server.address.port());
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
        }
        Err(error) => {
            eprintln!("cannot listen on port {port}: {error}");
            std::process::exit(1);
        }
    }
}
