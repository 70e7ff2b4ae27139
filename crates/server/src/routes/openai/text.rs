//! What a message says, as far as it is text.

use chancery_api::openai::{ChatMessage, Content};

use crate::error::{ApiError, Result};

/// The words of a message that must be understood: what is no text is refused, not skipped.
pub fn words(content: Option<&Content>) -> Result<String> {
    match content {
        None => Ok(String::new()),
        Some(Content::Text(text)) => Ok(text.clone()),
        Some(Content::Parts(parts)) => {
            let mut texts = Vec::with_capacity(parts.len());
            for part in parts {
                match (&*part.kind, &part.text) {
                    ("text" | "input_text" | "output_text", Some(text)) => texts.push(&**text),
                    (other, _) => {
                        let other: String = other.chars().take(64).collect();
                        return Err(ApiError::BadRequest {
                            code: "unsupported_content",
                            detail: format!("only text can be read here, not `{other}`"),
                        });
                    }
                }
            }
            Ok(texts.join("\n"))
        }
    }
}

/// The same where nothing depends on it.
pub fn words_at_least(content: Option<&Content>) -> String {
    words(content).unwrap_or_default()
}

/// The last message of the person, which is what is to be answered.
pub fn latest_of_user(messages: &[ChatMessage]) -> Result<String> {
    let latest = messages.iter().rev().find(|it| it.role == "user");
    let latest = latest.ok_or_else(|| ApiError::BadRequest {
        code: "no_user_message",
        detail: "`messages` has no message of the role `user`".to_owned(),
    })?;
    words(latest.content.as_ref())
}
