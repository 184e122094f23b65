//! Labels of files: the encoder that made each and its quality, read from its name by a pattern.

use std::path::Path;
use std::str::FromStr;

/// How names tell the encoder and the quality: `{encoder}/q{quality}`, `{encoder}-*-{quality}`. Matched against the end of
/// a path without its ending; a pattern with a `/` looks at as many folders as it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LabelPattern {
    tokens: Vec<Token>,
    folders: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Text(String),
    Any,
    Encoder,
    Quality,
}

/// What a name says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Labels {
    pub(super) encoder: Option<String>,
    pub(super) quality: Option<String>,
}

impl LabelPattern {
    /// What the name of a file says; nothing where it does not match.
    pub(super) fn of(&self, path: &Path) -> Labels {
        let name = super::names::in_row(&path.with_extension(""));
        let mut from = name.len();
        for _ in 0..=self.folders {
            from = name[..from].rfind('/').unwrap_or(0);
        }
        let end = name[from..].trim_start_matches('/');
        let mut labels = Labels::default();
        if matched(&self.tokens, end, &mut labels) { labels } else { Labels::default() }
    }
}

/// Whether all of a text matches; the shortest match of each token is tried first.
fn matched(tokens: &[Token], text: &str, labels: &mut Labels) -> bool {
    let Some((token, rest)) = tokens.split_first() else { return text.is_empty() };
    if let Token::Text(literal) = token {
        return text.strip_prefix(literal.as_str()).is_some_and(|after| matched(rest, after, labels));
    }
    let ends = text.char_indices().map(|(at, letter)| at + letter.len_utf8());
    let least = if *token == Token::Any { Some(0) } else { None };
    for end in least.into_iter().chain(ends) {
        let (part, after) = text.split_at(end);
        if part.contains('/') {
            return false;
        }
        if matched(rest, after, labels) {
            match token {
                Token::Encoder => labels.encoder = Some(part.to_owned()),
                Token::Quality => labels.quality = Some(part.to_owned()),
                Token::Text(_) | Token::Any => {}
            }
            return true;
        }
    }
    false
}

impl FromStr for LabelPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = if text == "folder" { "{encoder}/*" } else { text };
        let mut tokens = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let special = [("{encoder}", Token::Encoder), ("{quality}", Token::Quality), ("*", Token::Any)];
            let next =
                special.iter().filter_map(|(mark, token)| Some((rest.find(mark)?, mark, token))).min_by_key(|it| it.0);
            let Some((at, mark, token)) = next else {
                tokens.push(Token::Text(rest.to_owned()));
                break;
            };
            if at > 0 {
                tokens.push(Token::Text(rest[..at].to_owned()));
            }
            tokens.push(token.clone());
            rest = &rest[at + mark.len()..];
        }
        if !tokens.contains(&Token::Encoder) && !tokens.contains(&Token::Quality) {
            return Err(
                "a pattern names {encoder} or {quality}, such as '{encoder}/q{quality}'; or write folder".to_owned()
            );
        }
        Ok(Self { tokens, folders: text.matches('/').count() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pattern: &str, path: &str) -> (Option<String>, Option<String>) {
        let Labels { encoder, quality } = pattern.parse::<LabelPattern>().expect("a pattern").of(Path::new(path));
        (encoder, quality)
    }

    fn some(encoder: &str, quality: &str) -> (Option<String>, Option<String>) {
        (Some(encoder.to_owned()), Some(quality.to_owned()))
    }

    #[test]
    fn names_tell_encoder_and_quality() {
        assert_eq!(labels("{encoder}-q{quality}", "out/jpeg-q15.jpg"), some("jpeg", "15"));
        assert_eq!(labels("{encoder}/q{quality}", "out/mozjpeg/q80.jpg"), some("mozjpeg", "80"));
        assert_eq!(labels("{encoder}-*-{quality}", "a/webp-photo-3-75.webp"), some("webp", "3-75"));
        assert_eq!(labels("folder", "coded/av1/photo.png"), (Some("av1".to_owned()), None));
        assert_eq!(labels("{encoder}-q{quality}", "out/photo.jpg"), (None, None));
        assert_eq!(labels("{encoder}/q{quality}", "q80.jpg"), (None, None));
    }

    #[test]
    fn a_pattern_without_a_label_is_refused() {
        assert!("*.png".parse::<LabelPattern>().is_err());
    }
}
