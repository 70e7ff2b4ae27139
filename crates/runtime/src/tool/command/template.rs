//! A command with places for arguments: `["./payroll", "--to={to}", "--", "{file}"]`.
//!
//! - `{name}` stands for the value of one argument, within its own element.
//! - An element that names an argument which is not given is dropped. An option and its value
//!   that come and go together are written as one element: `--to={to}`.
//! - A text that begins with `-` is refused where it would begin an element, since the program
//!   could take it for an option of its own. After an element `--` it is passed on: there,
//!   programs take everything as it is.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    elements: Vec<Element>,
}

#[derive(Debug, Clone, PartialEq)]
struct Element {
    pieces: Vec<Piece>,
    /// Behind a `--`, where nothing is an option.
    after_options: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Literal(String),
    Argument(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("the command names no program")]
    Empty,
    #[error("the program itself cannot be an argument: `{0}`")]
    Program(String),
    #[error("`{{{0}}}` is not among the properties of the parameters")]
    Unknown(String),
    #[error("the command has a NUL byte in it")]
    Nul,
    #[error("`{0}` has a NUL byte in it")]
    NulArgument(String),
    #[error(
        "`{0}` begins with `-` and could be taken for an option; write `./-…` for a file, or ask \
         the operator to put `--` in front of `{{{0}}}` in the command"
    )]
    Option(String),
}

impl Template {
    pub fn new(argv: &[String], parameters: &Value) -> Result<Template, TemplateError> {
        let mut elements = Vec::with_capacity(argv.len());
        let mut after_options = false;
        for element in argv {
            if element.contains('\0') {
                return Err(TemplateError::Nul);
            }
            let pieces = pieces(element);
            for piece in &pieces {
                if let Piece::Argument(name) = piece
                    && parameters["properties"].get(name).is_none()
                {
                    return Err(TemplateError::Unknown(name.clone()));
                }
            }
            elements.push(Element { pieces, after_options });
            after_options |= element == "--";
        }
        match elements.first() {
            Some(Element { pieces, .. }) => match &pieces[..] {
                [Piece::Literal(program)] if !program.is_empty() => Ok(Template { elements }),
                [] | [Piece::Literal(_)] => Err(TemplateError::Empty),
                _ => Err(TemplateError::Program(argv[0].clone())),
            },
            None => Err(TemplateError::Empty),
        }
    }

    /// The arguments in their places.
    pub fn fill(&self, arguments: &Value) -> Result<Vec<String>, TemplateError> {
        let mut argv = Vec::with_capacity(self.elements.len());
        for element in &self.elements {
            if let Some(filled) = element.fill(arguments)? {
                argv.push(filled);
            }
        }
        Ok(argv)
    }
}

impl Element {
    /// `None`: an argument that it names is not given.
    fn fill(&self, arguments: &Value) -> Result<Option<String>, TemplateError> {
        let mut filled = String::new();
        for piece in &self.pieces {
            let name = match piece {
                Piece::Literal(text) => {
                    filled.push_str(text);
                    continue;
                }
                Piece::Argument(name) => name,
            };
            let value = match arguments.get(name) {
                None | Some(Value::Null) => return Ok(None),
                Some(value) => value,
            };
            // Values that are not texts cannot spell out an option: numbers are numbers.
            let text = match value {
                Value::String(text) => {
                    if text.starts_with('-') && filled.is_empty() && !self.after_options {
                        return Err(TemplateError::Option(name.clone()));
                    }
                    text.clone()
                }
                other => other.to_string(),
            };
            if text.contains('\0') {
                return Err(TemplateError::NulArgument(name.clone()));
            }
            filled.push_str(&text);
        }
        Ok(Some(filled))
    }
}

/// Cuts at every `{name}`. Other braces are what they are.
fn pieces(element: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = element;
    while let Some(open) = rest.find('{') {
        literal.push_str(&rest[..open]);
        let inside = &rest[open + 1..];
        match inside.find('}').map(|close| (&inside[..close], &inside[close + 1..])) {
            Some((name, after)) if is_name(name) => {
                if !literal.is_empty() {
                    pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                }
                pieces.push(Piece::Argument(name.to_owned()));
                rest = after;
            }
            _ => {
                literal.push('{');
                rest = inside;
            }
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    pieces
}

fn is_name(text: &str) -> bool {
    text.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
        && text.chars().all(|it| it.is_ascii_alphanumeric() || it == '_' || it == '-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #[test]
        fn no_value_becomes_two_arguments_or_an_option(value in "\\PC{0,20}|[- $`;|\"'*\n]{0,8}") {
            match fill(&["p", "{to}", "--to={to}", "--", "{to}"], json!({"to": &value})) {
                Ok(argv) => {
                    prop_assert_eq!(&argv[1..], [&*value, &format!("--to={value}"), "--", &value]);
                    prop_assert!(!argv[1].starts_with('-'));
                }
                Err(error) => prop_assert_eq!(error, TemplateError::Option("to".to_owned())),
            }
        }
    }

    fn fill(argv: &[&str], arguments: Value) -> Result<Vec<String>, TemplateError> {
        let argv: Vec<String> = argv.iter().map(|it| (*it).to_owned()).collect();
        Template::new(&argv, &json!({"properties": {"to": {}, "n": {}, "list": {}}}))?
            .fill(&arguments)
    }

    #[test]
    fn values_stand_in_their_places() {
        let arguments = json!({"to": "a b", "n": -3, "list": [1, {"k": true}]});
        assert_eq!(
            fill(&["p", "{to}", "--to={to}", "{n}", "{list}", "{n}{to}", "{}", "{a b}"], arguments)
                .unwrap(),
            ["p", "a b", "--to=a b", "-3", r#"[1,{"k":true}]"#, "-3a b", "{}", "{a b}"]
        );
    }

    #[test]
    fn an_element_whose_argument_is_missing_is_dropped() {
        assert_eq!(fill(&["p", "--to={to}", "x"], json!({})).unwrap(), ["p", "x"]);
        assert_eq!(fill(&["p", "{to}"], json!({"to": null})).unwrap(), ["p"]);
        assert_eq!(fill(&["p", "{to}"], json!({"to": ""})).unwrap(), ["p", ""]);
    }

    #[test]
    fn a_value_cannot_become_an_option() {
        let sly = || json!({"to": "--output=/etc/passwd"});
        let refused = Err(TemplateError::Option("to".to_owned()));
        assert_eq!(fill(&["p", "{to}"], sly()), refused);
        assert_eq!(fill(&["p", "--to", "{to}"], sly()), refused);
        assert_eq!(fill(&["p", "{to}", "--"], sly()), refused);
        assert_eq!(fill(&["p", "--", "{to}"], sly()).unwrap()[2], "--output=/etc/passwd");
        assert_eq!(fill(&["p", "--to={to}"], sly()).unwrap()[1], "--to=--output=/etc/passwd");
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        assert_eq!(fill(&[], json!({})), Err(TemplateError::Empty));
        assert_eq!(fill(&[""], json!({})), Err(TemplateError::Empty));
        assert_eq!(fill(&["{to}"], json!({})), Err(TemplateError::Program("{to}".to_owned())));
        assert_eq!(fill(&["p", "{who}"], json!({})), Err(TemplateError::Unknown("who".to_owned())));
        assert_eq!(
            fill(&["p", "{to}"], json!({"to": "a\0b"})),
            Err(TemplateError::NulArgument("to".to_owned()))
        );
    }
}
