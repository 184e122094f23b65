//! Sums as sizes and places are written: half of `iw` as iw/2, or `min(1280,iw)`.
//! Never knows a picture: whoever asks brings its sides. Invariant: nesting is bounded, so that no text exhausts the stack.

use std::fmt;

use crate::frames::operation::OperationError;
use crate::image::Size;

/// Brackets within brackets at most.
const NESTING_MAX: usize = 32;

/// A sum, read.
#[derive(Clone, PartialEq)]
pub(super) struct Expression {
    text: String,
    root: Node,
}

/// What names in a sum stand for.
#[derive(Copy, Clone, Debug)]
pub(super) struct Sides {
    /// `iw` and `ih`: the picture as it comes.
    pub(super) input: Size,
    /// `ow` and `oh`: the picture as it leaves, if that is known by now.
    pub(super) output: Option<Size>,
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Number(f64),
    Name(Name),
    Negative(Box<Node>),
    Pair(Operator, Box<Node>, Box<Node>),
    Rounded(Rounding, Box<Node>),
}

#[derive(Copy, Clone, Debug, PartialEq)]
enum Name {
    InputWidth,
    InputHeight,
    OutputWidth,
    OutputHeight,
    InputShape,
}

#[derive(Copy, Clone, Debug, PartialEq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Smaller,
    Larger,
}

#[derive(Copy, Clone, Debug, PartialEq)]
enum Rounding {
    Down,
    Up,
    Nearest,
}

const NAMES: [(&str, Name); 9] = [
    ("iw", Name::InputWidth),
    ("in_w", Name::InputWidth),
    ("ih", Name::InputHeight),
    ("in_h", Name::InputHeight),
    ("ow", Name::OutputWidth),
    ("out_w", Name::OutputWidth),
    ("oh", Name::OutputHeight),
    ("out_h", Name::OutputHeight),
    ("a", Name::InputShape),
];
const PAIRS: [(&str, Operator); 2] = [("min", Operator::Smaller), ("max", Operator::Larger)];
const ROUNDINGS: [(&str, Rounding); 4] =
    [("floor", Rounding::Down), ("trunc", Rounding::Down), ("ceil", Rounding::Up), ("round", Rounding::Nearest)];

impl Expression {
    /// Reads a sum; one in quotes, as ffmpeg's users write them, too.
    pub(super) fn parse(text: &str) -> Result<Self, OperationError> {
        let bare = text.trim().trim_matches('\'');
        let refused = || {
            OperationError::because(format_args!(
                "'{text}' is no number; write one, or a sum of iw, ih, ow, oh and numbers, as iw/2 or min(1280,iw)"
            ))
        };
        let mut reader = Reader { rest: bare, nesting: 0 };
        let root = reader.sum().filter(|_| reader.rest.is_empty()).ok_or_else(refused)?;
        Ok(Self { text: bare.to_owned(), root })
    }

    /// A number that was written as one.
    pub(super) fn literal(&self) -> Option<f64> {
        match self.root {
            Node::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Its value for a picture, rounded down.
    pub(super) fn of(&self, sides: Sides) -> Result<i64, OperationError> {
        let refused =
            || OperationError::because(format_args!("{} gives no number for frames of {}", self.text, sides.input));
        let value = self.root.of(sides).filter(|value| value.is_finite()).ok_or_else(refused)?;
        // What floats make of 3 * (1 / 3) is still meant to be 1.
        Ok((value + 1e-9).floor() as i64)
    }
}

/// Warm sessions are told apart by it.
impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Node {
    fn of(&self, sides: Sides) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Name(name) => name.of(sides),
            Self::Negative(of) => Some(-of.of(sides)?),
            Self::Rounded(rounding, of) => {
                let value = of.of(sides)?;
                Some(match rounding {
                    Rounding::Down => value.floor(),
                    Rounding::Up => value.ceil(),
                    Rounding::Nearest => value.round(),
                })
            }
            Self::Pair(operator, first, second) => {
                let (first, second) = (first.of(sides)?, second.of(sides)?);
                Some(match operator {
                    Operator::Add => first + second,
                    Operator::Subtract => first - second,
                    Operator::Multiply => first * second,
                    Operator::Divide => first / second,
                    Operator::Smaller => first.min(second),
                    Operator::Larger => first.max(second),
                })
            }
        }
    }
}

impl Name {
    fn of(self, Sides { input, output }: Sides) -> Option<f64> {
        match self {
            Self::InputWidth => Some(input.width.into()),
            Self::InputHeight => Some(input.height.into()),
            Self::OutputWidth => output.map(|size| size.width.into()),
            Self::OutputHeight => output.map(|size| size.height.into()),
            Self::InputShape => Some(f64::from(input.width) / f64::from(input.height)),
        }
    }
}

/// What is left to read.
struct Reader<'a> {
    rest: &'a str,
    nesting: usize,
}

impl Reader<'_> {
    fn takes(&mut self, sign: char) -> bool {
        let rest = self.rest.trim_start();
        match rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn sum(&mut self) -> Option<Node> {
        let mut sum = self.product()?;
        loop {
            let operator = match () {
                () if self.takes('+') => Operator::Add,
                () if self.takes('-') => Operator::Subtract,
                () => return Some(sum),
            };
            sum = Node::Pair(operator, Box::new(sum), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Option<Node> {
        let mut product = self.part()?;
        loop {
            let operator = match () {
                () if self.takes('*') => Operator::Multiply,
                () if self.takes('/') => Operator::Divide,
                () => return Some(product),
            };
            product = Node::Pair(operator, Box::new(product), Box::new(self.part()?));
        }
    }

    fn part(&mut self) -> Option<Node> {
        self.nesting += 1;
        if self.nesting > NESTING_MAX {
            return None;
        }
        let part = match () {
            () if self.takes('-') => Some(Node::Negative(Box::new(self.part()?))),
            () if self.takes('(') => self.sum().filter(|_| self.takes(')')),
            () => self.number_or_name(),
        };
        self.nesting -= 1;
        part
    }

    fn number_or_name(&mut self) -> Option<Node> {
        let rest = self.rest.trim_start();
        let is_part = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '.';
        let (word, rest) = rest.split_at(rest.find(|sign| !is_part(sign)).unwrap_or(rest.len()));
        self.rest = rest;
        if word.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
            let plain = word.chars().all(|sign| sign.is_ascii_digit() || sign == '.');
            return word.parse().ok().filter(|_| plain).map(Node::Number);
        }
        if let Some((_, name)) = NAMES.iter().find(|(name, _)| *name == word) {
            return Some(Node::Name(*name));
        }
        if let Some((_, operator)) = PAIRS.iter().find(|(name, _)| *name == word) {
            let first = Some(()).filter(|()| self.takes('(')).and_then(|()| self.sum())?;
            let second = Some(()).filter(|()| self.takes(',')).and_then(|()| self.sum())?;
            return self.takes(')').then(|| Node::Pair(*operator, Box::new(first), Box::new(second)));
        }
        let (_, rounding) = ROUNDINGS.iter().find(|(name, _)| *name == word)?;
        let of = Some(()).filter(|()| self.takes('(')).and_then(|()| self.sum())?;
        self.takes(')').then(|| Node::Rounded(*rounding, Box::new(of)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIDES: Sides =
        Sides { input: Size { width: 1920, height: 1080 }, output: Some(Size { width: 100, height: 50 }) };

    #[test]
    fn sums_are_what_they_say() {
        let of = |text: &str| Expression::parse(text).unwrap().of(SIDES).unwrap();
        for (text, wanted) in [
            ("iw/2", 960),
            ("1280", 1280),
            ("(iw-ow)/2", 910),
            ("2+3*4-1", 13),
            ("2-3-4", -5),
            ("-ih/2", -540),
            ("min(1280, iw)", 1280),
            ("'max(ih,iw/3)'", 1080),
            ("ceil(iw/7)*7", 1925),
            ("in_h*a", 1920),
            ("iw/7", 274),
            ("1.5*oh", 75),
            ("iw*(1/3)*3", 1920),
        ] {
            assert_eq!(of(text), wanted, "{text}");
        }
    }

    #[test]
    fn what_is_no_sum_is_refused() {
        let deep = format!("{}1{}", "(".repeat(1000), ")".repeat(1000));
        for wrong in ["", "iw/", "2 3", "width", "min(1)", "1e5", "(1", "1)", "lanczos", "0x10", "--", &deep] {
            assert!(Expression::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Expression::parse("1/0").unwrap().of(SIDES).is_err());
        let unknown = Sides { output: None, ..SIDES };
        assert!(Expression::parse("ow").unwrap().of(unknown).is_err());
    }
}
