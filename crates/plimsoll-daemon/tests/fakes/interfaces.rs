//! The engines' interfaces, one function each: paths, methods, bodies and answers as they are published.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::server::{Conversation, Request};
use super::{MIB, State, lock};
use plimsoll_daemon::engines::EngineKind;

type Shared = Arc<Mutex<State>>;

pub(crate) fn loaded_at_first(kind: EngineKind) -> BTreeMap<String, u64> {
    let parts: &[(&str, u64)] = match kind {
        EngineKind::Ollama | EngineKind::LlamaCpp | EngineKind::LlamaSwap => &[("big", 600), ("small", 200)],
        EngineKind::Comfyui => &[("models", 700), ("cache", 100)],
        EngineKind::Vllm | EngineKind::Sglang => &[("weights", 500), ("kv_cache", 300)],
        EngineKind::Automatic1111 => &[("checkpoint", 800)],
        EngineKind::Command => &[],
    };
    parts.iter().map(|(name, mib)| ((*name).to_owned(), mib * MIB)).collect()
}

/// Whether a request is to give memory back.
pub(crate) fn is_step(kind: EngineKind, request: &Request) -> bool {
    request.method == "POST"
        && match kind {
            EngineKind::Ollama => request.json()["keep_alive"] == 0,
            EngineKind::Comfyui => request.path() == "/free",
            EngineKind::Vllm => request.path() == "/sleep",
            EngineKind::Sglang => request.path() == "/release_memory_occupation",
            EngineKind::LlamaCpp => request.path() == "/models/unload",
            EngineKind::LlamaSwap => request.path().starts_with("/api/models/unload"),
            EngineKind::Automatic1111 => request.path() == "/sdapi/v1/unload-checkpoint",
            EngineKind::Command => false,
        }
}

pub(crate) fn answer(state: &Shared, request: &Request, to: &mut Conversation) -> io::Result<()> {
    let kind = lock(state).kind;
    match kind {
        EngineKind::Ollama => ollama(state, request, to),
        EngineKind::Comfyui => comfyui(state, request, to),
        EngineKind::Vllm => vllm(state, request, to),
        EngineKind::Sglang => sglang(state, request, to),
        EngineKind::LlamaCpp => llama_cpp(state, request, to),
        EngineKind::LlamaSwap => llama_swap(state, request, to),
        EngineKind::Automatic1111 => automatic1111(state, request, to),
        EngineKind::Command => to.json(404, &json!({})),
    }
}

/// Frees after the answer, as engines do.
fn later(state: &Shared, change: impl FnOnce(&mut State) + Send + 'static) {
    let (state, wait) = (Arc::clone(state), lock(state).frees_after);
    std::thread::spawn(move || {
        std::thread::sleep(wait);
        let mut state = lock(&state);
        change(&mut state);
        state.tell_the_driver();
    });
}

fn ollama(state: &Shared, request: &Request, to: &mut Conversation) -> io::Result<()> {
    match (request.method.as_str(), request.path()) {
        ("GET", "/") => to.reply(200, "text/plain; charset=utf-8", b"Ollama is running"),
        ("GET", "/api/version") => to.json(200, &json!({ "version": "0.12.3" })),
        ("GET", "/api/tags") => {
            let names: Vec<Value> =
                lock(state).catalogue.keys().map(|name| json!({ "name": name, "model": name })).collect();
            to.json(200, &json!({ "models": names }))
        }
        ("GET", "/api/ps") => {
            let model = |(name, bytes): (&String, &u64)| {
                json!({ "name": name, "model": name, "size": bytes + 1000, "digest": "c0ffee", "size_vram": bytes,
                        "details": { "format": "gguf", "family": "llama", "parameter_size": "8.0B" },
                        "expires_at": if name == "small" { "2026-01-01T10:00:00Z" } else { "2026-01-01T10:05:00Z" },
                        "context_length": 4096 })
            };
            let models: Vec<Value> = lock(state).models.iter().map(model).collect();
            to.json(200, &json!({ "models": models }))
        }
        ("POST", "/api/generate" | "/api/chat") => ollama_generate(state, request, to),
        _ => to.reply(404, "text/plain", b"404 page not found"),
    }
}

fn ollama_generate(state: &Shared, request: &Request, to: &mut Conversation) -> io::Result<()> {
    let body = request.json();
    let name = body["model"].as_str().unwrap_or_default().to_owned();
    let known = lock(state).catalogue.get(&name).copied();
    let Some(bytes) = known else {
        return to.json(404, &json!({ "error": format!("model '{name}' not found") }));
    };
    let stamp = "2026-01-01T10:00:00.5Z";
    if body["keep_alive"] == 0 && body["prompt"].as_str().unwrap_or_default().is_empty() {
        let unloaded = name.clone();
        later(state, move |state| state.unload(&unloaded, false));
        return to.json(
            200,
            &json!({ "model": name, "created_at": stamp, "response": "", "done": true, "done_reason": "unload" }),
        );
    }
    let (pieces, pause) = {
        let mut state = lock(state);
        state.models.insert(name.clone(), bytes);
        state.busy += 1;
        state.tell_the_driver();
        state.pieces
    };
    let streamed = stream_ndjson(to, &name, pieces, pause, body["stream"] != false);
    lock(state).busy -= 1;
    streamed
}

fn stream_ndjson(
    to: &mut Conversation,
    name: &str,
    pieces: usize,
    pause: std::time::Duration,
    streams: bool,
) -> io::Result<()> {
    let stamp = "2026-01-01T10:00:00.5Z";
    if !streams {
        std::thread::sleep(pause * u32::try_from(pieces).unwrap_or(u32::MAX));
        return to.json(200, &json!({ "model": name, "created_at": stamp, "response": "all at once", "done": true }));
    }
    to.begin_chunks("application/x-ndjson", "")?;
    for piece in 0..pieces {
        let line = json!({ "model": name, "created_at": stamp, "response": format!(" word{piece}"), "done": false });
        to.chunk(format!("{line}\n").as_bytes())?;
        std::thread::sleep(pause);
    }
    let line = json!({ "model": name, "created_at": stamp, "response": "", "done": true, "done_reason": "stop" });
    to.chunk(format!("{line}\n").as_bytes())?;
    to.end_chunks("")
}

fn comfyui(state: &Shared, request: &Request, to: &mut Conversation) -> io::Result<()> {
    match (request.method.as_str(), request.path()) {
        ("GET", "/system_stats") => {
            let reserved: u64 = lock(state).models.values().sum();
            to.json(200, &json!({
                "system": { "os": "posix", "comfyui_version": "0.3.60", "python_version": "3.12", "argv": ["main.py"] },
                "devices": [{ "name": "cuda:0 card", "type": "cuda", "index": 0, "vram_total": 8192 * MIB,
                              "vram_free": 8192 * MIB - reserved, "torch_vram_total": reserved, "torch_vram_free": 0 }],
            }))
        }
        ("GET", "/queue") => {
            let item = |at: u64| json!([at, "id", {}, {}, []]);
            let busy = lock(state).busy;
            let running: Vec<Value> = (0..busy.min(1)).map(item).collect();
            let pending: Vec<Value> = (1..busy).map(item).collect();
            to.json(200, &json!({ "queue_running": running, "queue_pending": pending }))
        }
        ("POST", "/free") => {
            let body = request.json();
            let (models, cache) = (body["unload_models"] == true, body["free_memory"] == true);
            later(state, move |state| {
                // The worker reads the flags when it has nothing to do.
                if state.busy == 0 && models {
                    state.unload("models", false);
                }
                if state.busy == 0 && cache {
                    state.unload("cache", false);
                }
            });
            to.reply(200, "text/plain", b"")
        }
        ("POST", "/prompt" | "/api/prompt") => {
            let mut state = lock(state);
            state.models = loaded_at_first(EngineKind::Comfyui);
            state.tell_the_driver();
            drop(state);
            to.json(200, &json!({ "prompt_id": "7b0c", "number": 1, "node_errors": {} }))
        }
        ("GET", "/ws") => web_socket(request, to),
        _ => to.reply(404, "text/plain", b"404: Not Found"),
    }
}

fn web_socket(request: &Request, to: &mut Conversation) -> io::Result<()> {
    use std::io::Write;
    if request.header("upgrade").is_none_or(|value| !value.eq_ignore_ascii_case("websocket")) {
        return to.reply(400, "text/plain", b"no websocket");
    }
    let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n";
    to.stream.write_all(head.as_bytes())?;
    to.echo()
}

fn vllm(state: &Shared, request: &Request, to: &mut Conversation) -> io::Result<()> {
    let asleep = !lock(state).parked.is_empty();
    match (request.method.as_str(), request.path()) {
        ("GET", "/is_sleeping") => to.json(200, &json!({ "is_sleeping": asleep })),
        ("GET", "/metrics") => {
            let busy = lock(state).busy;
            let text = format!(
                "# HELP vllm:num_requests_running Number of requests in model execution batches.\n\
                 # TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{{engine=\"0\",model_name=\"m\"}} {}.0\n\
                 vllm:num_requests_waiting{{engine=\"0\",model_name=\"m\"}} {}.0\n",
                busy.min(1),
                busy.saturating_sub(1)
            );
            to.reply(200, "text/plain; version=0.0.4", text.as_bytes())
        }
        // A sleeper that is told to sleep stays as it is.
        ("POST", "/sleep") if asleep => to.reply(200, "application/json", b""),
        ("POST", "/sleep") => {
            later(state, |state| ["weights", "kv_cache"].iter().for_each(|part| state.unload(part, true)));
            to.reply(200, "application/json", b"")
        }
        ("POST", "/wake_up") => {
            let only = request.target.split_once("tags=").map(|(_, tag)| tag.to_owned());
            let mut state = lock(state);
            for part in ["weights", "kv_cache"].iter().filter(|part| only.as_deref().is_none_or(|tag| tag == **part)) {
                state.unpark(part);
            }
            state.tell_the_driver();
            drop(state);
            to.reply(200, "application/json", b"")
        }
        ("POST", "/collective_rpc") => to.json(200, &json!({ "results": [null] })),
        ("POST", "/v1/completions") if asleep => {
            to.json(500, &json!({ "error": { "message": "EngineCore encountered an issue" } }))
        }
        ("POST", "/v1/completions") => {
            to.begin_chunks("text/event-stream; charset=utf-8", "")?;
            to.chunk(b"data: {\"choices\": [{\"text\": \" a\"}]}\n\n")?;
            to.chunk(b"data: [DONE]\n\n")?;
            to.end_chunks("")
        }
        _ => to.json(404, &json!({ "detail": "Not Found" })),
    }
}

fn sglang(state: &Shared, request: &Request, to: &mut Conversation) -> io::Result<()> {
    let busy = lock(state).busy;
    let is_old = lock(state).is_old;
    let tags: Vec<String> = request.json()["tags"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|tag| tag.as_str().map(str::to_owned))
        .collect();
    match (request.method.as_str(), request.path()) {
        ("GET", "/v1/loads") if !is_old => to.json(200, &json!({
            "timestamp": "2026-01-01T10:00:00", "version": "0.5.6", "dp_rank_count": 1,
            "loads": [{ "dp_rank": 0, "num_running_reqs": busy.min(1), "num_waiting_reqs": busy.saturating_sub(1), "num_used_tokens": 0 }],
        })),
        ("GET", "/get_load") => to.json(200, &json!([{ "dp_rank": 0, "num_reqs": busy, "num_waiting_reqs": busy.saturating_sub(1), "num_tokens": 0 }])),
        ("POST", "/release_memory_occupation") => {
            if busy > 0 || tags.iter().any(|tag| lock(state).parked.contains_key(tag)) {
                lock(state).crashed = Some("released while not idle, or twice".to_owned());
                return to.break_off();
            }
            let mut state = lock(state);
            tags.iter().for_each(|tag| state.unload(tag, true));
            state.tell_the_driver();
            drop(state);
            to.reply(200, "application/json", b"null")
        }
        ("POST", "/resume_memory_occupation") => {
            if tags.iter().any(|tag| !lock(state).parked.contains_key(tag)) {
                lock(state).crashed = Some("resumed what was not released".to_owned());
                return to.break_off();
            }
            let mut state = lock(state);
            tags.iter().for_each(|tag| state.unpark(tag));
            state.tell_the_driver();
            drop(state);
            to.reply(200, "application/json", b"null")
        }
        _ => to.json(404, &json!({ "detail": "Not Found" })),
    }
}

/// Only one of the models works.
fn slots(state: &Shared, request: &Request, to: &mut Conversation) -> io::Result<()> {
    let busy = if request.target.contains("big") { lock(state).busy } else { 0 };
    let has_no_slots = lock(state).has_no_slots;
    if has_no_slots {
        return to
            .json(501, &json!({ "error": { "code": 501, "message": "This server does not support slots endpoint" } }));
    }
    let slots: Vec<Value> = (0..4).map(|id| json!({ "id": id, "n_ctx": 4096, "is_processing": id < busy })).collect();
    to.json(200, &Value::Array(slots))
}

fn llama_cpp(state: &Shared, request: &Request, to: &mut Conversation) -> io::Result<()> {
    match (request.method.as_str(), request.path()) {
        ("GET", "/models" | "/v1/models") => {
            let state = lock(state);
            let model = |name: &String| {
                let value = if state.models.contains_key(name) { "loaded" } else { "unloaded" };
                json!({ "id": name, "object": "model", "owned_by": "llamacpp", "created": 1, "in_cache": true,
                        "status": { "value": value, "args": ["llama-server", "-ctx", "4096"] } })
            };
            let data: Vec<Value> = state.catalogue.keys().map(model).collect();
            drop(state);
            to.json(200, &json!({ "data": data, "object": "list" }))
        }
        ("GET", "/slots") => slots(state, request, to),
        ("POST", "/models/unload") => {
            let name = request.json()["model"].as_str().unwrap_or_default().to_owned();
            if !lock(state).models.contains_key(&name) {
                return to.json(400, &json!({ "error": { "code": 400, "message": "model is not running", "type": "invalid_request_error" } }));
            }
            later(state, move |state| state.unload(&name, false));
            to.json(200, &json!({ "success": true }))
        }
        _ => to.json(404, &json!({ "error": { "code": 404, "message": "File Not Found", "type": "not_found_error" } })),
    }
}

fn llama_swap(state: &Shared, request: &Request, to: &mut Conversation) -> io::Result<()> {
    match (request.method.as_str(), request.path()) {
        ("GET", "/running") => {
            let model = |name: &String| {
                json!({ "model": name, "state": "ready", "cmd": "llama-server", "proxy": "http://127.0.0.1:9001", "ttl": 0,
                        "name": "", "description": "" })
            };
            let running: Vec<Value> = lock(state).models.keys().map(model).collect();
            to.json(200, &json!({ "running": running }))
        }
        ("GET", path) if path.starts_with("/upstream/") && path.ends_with("/slots") => slots(state, request, to),
        ("POST", path) if path.starts_with("/api/models/unload/") => {
            let name = path.trim_start_matches("/api/models/unload/").to_owned();
            if !lock(state).catalogue.contains_key(&name) {
                return to.reply(404, "text/plain", b"Model not found");
            }
            later(state, move |state| state.unload(&name, false));
            to.reply(200, "text/plain; charset=utf-8", b"OK")
        }
        _ => to.reply(404, "text/plain", b"404 page not found"),
    }
}

fn automatic1111(state: &Shared, request: &Request, to: &mut Conversation) -> io::Result<()> {
    match (request.method.as_str(), request.path()) {
        ("GET", "/sdapi/v1/memory") => {
            let reserved: u64 = lock(state).models.values().sum();
            let pair = json!({ "current": reserved, "peak": reserved });
            to.json(200, &json!({
                "ram": { "free": 1.5e9, "used": 2.5e9, "total": 4e9 },
                "cuda": { "system": { "free": 1, "used": 2, "total": 3 }, "active": pair, "allocated": pair, "reserved": pair,
                          "inactive": pair, "events": { "retries": 0, "oom": 0 } },
            }))
        }
        ("GET", "/sdapi/v1/progress") => {
            let busy = lock(state).busy;
            to.json(200, &json!({
                "progress": if busy > 0 { 0.4 } else { 0.0 }, "eta_relative": 0.0, "current_image": null, "textinfo": null,
                "state": { "skipped": false, "interrupted": false, "job": "", "job_count": busy, "job_timestamp": "0",
                           "job_no": 0, "sampling_step": 0, "sampling_steps": 0 },
            }))
        }
        ("POST", "/sdapi/v1/unload-checkpoint") => {
            let mut state = lock(state);
            state.unload("checkpoint", true);
            state.tell_the_driver();
            drop(state);
            to.json(200, &json!({}))
        }
        ("POST", "/sdapi/v1/reload-checkpoint") => {
            let mut state = lock(state);
            state.unpark("checkpoint");
            state.tell_the_driver();
            drop(state);
            to.json(200, &json!({}))
        }
        _ => to.json(404, &json!({ "detail": "Not Found" })),
    }
}
