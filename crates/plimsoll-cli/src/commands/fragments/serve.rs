//! `plimsoll fragments serve`.

use plimsoll::fragments::Server;
use serde_json::json;

use super::args::ServeArgs;
use super::failed;
use crate::output;
use crate::stop::{self, Ended, Stop, warn};

/// `plimsoll fragments serve`.
pub(super) fn run(args: &ServeArgs) -> Ended {
    let server = Server::bind(args.listen, &args.models).map_err(|error| failed(&error))?;
    let address = server.address().map_err(Stop::failed)?;
    if !address.ip().is_loopback() {
        warn(format_args!("everybody who reaches {address} can read these files"));
    }
    let url = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        format!("http://{address}/{}", name.replace('%', "%25").replace(' ', "%20"))
    };
    let urls: Vec<String> = args.models.iter().map(url).collect();
    if args.json {
        let line =
            serde_json::to_string(&json!({ "listen": address.to_string(), "urls": urls })).map_err(Stop::failed)?;
        output::line(line)?;
    } else {
        urls.iter().try_for_each(output::line)?;
    }
    let sign = stop::on_signal();
    server.run(move || sign.is_raised()).map_err(|error| Stop::failed(format_args!("{address}: {error}")))
}
